import { reasonHeader, staleGeneration, wrongEpoch, wrongNode } from '@atoll/contracts/node-faults'
import { diskFull } from '@atoll/kit/disk-full'
import { Fault } from '@atoll/kit/fault'
import { Code, ConnectError } from '@connectrpc/connect'

/** Maps errors of the node to faults of the platform API. */

/** Maps refusals of calls whose caller is out of date. Undefined for other errors. */
export function toFenceFault(error: unknown, id: string): Fault | undefined {
  const options = { cause: error }
  switch (reasonOf(error)) {
    case staleGeneration:
      return new Fault(
        'conflict',
        'sandbox_superseded',
        `Sandbox ${id} was started again since this request was made: read its state and try again`,
        options,
      )
    default:
      return toRestartFault(error)
  }
}

/** Maps the refusal of an agent that the call was not meant for. Undefined for other errors. */
function toRestartFault(error: unknown): Fault | undefined {
  const reason = reasonOf(error)
  if (reason !== wrongNode && reason !== wrongEpoch) return undefined
  const message = 'The node has restarted, and nothing was changed; try again later'
  return new Fault('unavailable', 'node_changed', message, { cause: error })
}

/** Maps what is not about a sandbox: the node has restarted or does not answer. Undefined for other errors. */
export function toNodeFault(error: unknown): Fault | undefined {
  return toRestartFault(error) ?? toAbsenceFault(error)
}

/** Maps the loss of the connection to a node. Undefined for other errors. */
export function toAbsenceFault(error: unknown): Fault | undefined {
  if (codeOf(error) !== Code.Unavailable) return undefined
  if (objectReasons.has(reasonOf(error) ?? '')) return noObjects(error)
  return new Fault('unavailable', 'node_unavailable', 'The node does not answer; try again later', {
    cause: error,
  })
}

/** The node's CPU lacks what saved memory needs. Another node may have it. */
const nodeUnsuitable = 'node_unsuitable'
const objectsUnavailable = 'objects_unavailable'
const sandboxEvicted = 'sandbox_evicted'
/** Reasons of the node when the object store fails or has damaged content. They say nothing about the health of the node. */
const objectReasons = new Set([
  objectsUnavailable,
  'object_missing',
  'object_damaged',
  'object_unreadable',
])

function noObjects(error: unknown): Fault {
  return new Fault('unavailable', objectsUnavailable, messageOf(error), { cause: error })
}

/** Maps the refusal of a node that has the files of a paused sandbox in the object store only. Undefined for other errors. */
function toEvictedFault(error: unknown): Fault | undefined {
  if (reasonOf(error) !== sandboxEvicted) return undefined
  return new Fault('conflict', sandboxEvicted, messageOf(error), { cause: error })
}

export function toFetchFault(error: unknown, id: string): Fault {
  const known = toFenceFault(error, id) ?? toAbsenceFault(error)
  if (known) return known
  const options = { cause: error }
  const stays = `Sandbox ${id} stays paused: ${messageOf(error)}`
  switch (codeOf(error)) {
    case Code.NotFound:
      return new Fault('unavailable', 'sandbox_content_missing', stays, options)
    case Code.AlreadyExists:
      return new Fault('conflict', 'sandbox_content_conflict', stays, options)
    case Code.FailedPrecondition:
      return new Fault('conflict', nodeUnsuitable, stays, options)
    case Code.ResourceExhausted:
      return diskFullFault(error, 'The sandbox stays paused.')
    default:
      return new Fault(
        'internal',
        'sandbox_resume_failed',
        'The node failed to fetch the sandbox; the server log has the reason',
        options,
      )
  }
}

export function toCreateFault(error: unknown, id: string): Fault {
  const known = toFenceFault(error, id) ?? toAbsenceFault(error)
  if (known) return known
  if (isDiskFull(error)) return diskFullFault(error)
  if (codeOf(error) === Code.ResourceExhausted) return noRoom(error)
  if (codeOf(error) === Code.Aborted) {
    return new Fault('unavailable', 'ready_name_gone', messageOf(error), { cause: error })
  }
  if (codeOf(error) === Code.DataLoss) return unreadable(error)
  if (reasonOf(error) === nodeUnsuitable) {
    return new Fault('conflict', nodeUnsuitable, messageOf(error), { cause: error })
  }
  if (codeOf(error) === Code.FailedPrecondition) {
    const message = `This node cannot create a sandbox from the snapshot: ${messageOf(error)}`
    return new Fault('invalid', 'snapshot_unreadable', message, { cause: error })
  }
  return new Fault(
    'internal',
    'sandbox_create_failed',
    'The node failed to start the sandbox; the server log has the reason',
    { cause: error },
  )
}

/** Hides the node's message, which has paths and mirrors of the machine; the cause is logged. */
export function toInstallFault(error: unknown): Fault {
  if (isDiskFull(error)) return diskFullFault(error)
  return new Fault(
    'unavailable',
    'install_failed',
    'The template could not be installed; the log of the server says why. Try again once it is fixed',
    { cause: error },
  )
}

export function toPauseFault(error: unknown, id: string): Fault {
  const fenced = toFenceFault(error, id)
  if (fenced) return fenced
  const options = { cause: error }
  switch (codeOf(error)) {
    case Code.NotFound:
      return notFound(error, id)
    case Code.DataLoss:
      return unreadable(error)
    case Code.FailedPrecondition:
      return memoryNotKept(error, 'send memory: false to pause without memory')
    case Code.ResourceExhausted:
      return diskFullFault(error, 'The sandbox keeps running.')
    case Code.Unavailable:
      return busy(error)
    default:
      return new Fault(
        'internal',
        'sandbox_pause_failed',
        'The node failed to pause the sandbox; the server log has the reason',
        options,
      )
  }
}

export function toResumeFault(error: unknown, id: string): Fault {
  const known = toFenceFault(error, id) ?? toEvictedFault(error)
  if (known) return known
  const options = { cause: error }
  switch (codeOf(error)) {
    case Code.NotFound:
      return notFound(error, id)
    case Code.DataLoss:
      return unreadable(error)
    case Code.FailedPrecondition:
      return new Fault(
        'conflict',
        'sandbox_memory_lost',
        `Sandbox ${id} stays paused: ${messageOf(error)}`,
        options,
      )
    case Code.ResourceExhausted:
      return isDiskFull(error) ? diskFullFault(error, 'The sandbox stays paused.') : noRoom(error)
    case Code.Unavailable:
      return busy(error)
    default:
      return new Fault(
        'internal',
        'sandbox_resume_failed',
        'The node failed to resume the sandbox; the server log has the reason',
        options,
      )
  }
}

export function toSnapshotFault(error: unknown, id: string): Fault {
  const fenced = toFenceFault(error, id)
  if (fenced) return fenced
  const options = { cause: error }
  switch (codeOf(error)) {
    case Code.NotFound:
      return notFound(error, id)
    case Code.DataLoss:
      return unreadable(error)
    case Code.FailedPrecondition:
      return memoryNotKept(error, 'the sandbox runs on')
    case Code.ResourceExhausted:
      return diskFullFault(error, 'The sandbox keeps running.')
    case Code.Unavailable:
      return busy(error)
    default:
      return new Fault(
        'internal',
        'sandbox_snapshot_failed',
        'The node failed to copy the sandbox; the server log has the reason',
        options,
      )
  }
}

export function toNetworkFault(error: unknown, id: string): Fault {
  const known = toFenceFault(error, id) ?? toAbsenceFault(error)
  if (known) return known
  if (codeOf(error) === Code.NotFound) return notFound(error, id)
  if (codeOf(error) === Code.DataLoss) return unreadable(error)
  if (codeOf(error) === Code.InvalidArgument) {
    return new Fault('invalid', 'network_refused', messageOf(error), { cause: error })
  }
  return new Fault(
    'internal',
    'network_update_failed',
    'The node failed to change the network rules of the sandbox; the server log has the reason',
    { cause: error },
  )
}

/** Passes on the node's messages: they are written for API users. */
export function toInspectionFault(error: unknown, id: string): Fault {
  const known = toRestartFault(error) ?? toEvictedFault(error)
  if (known) return known
  const options = { cause: error }
  switch (codeOf(error)) {
    case Code.NotFound:
      return notFound(error, id)
    case Code.DataLoss:
      return unreadable(error)
    case Code.InvalidArgument:
      return new Fault('invalid', 'inspection_refused', messageOf(error), options)
    case Code.Unavailable:
      return new Fault('unavailable', 'inspection_unavailable', messageOf(error), options)
    default:
      return new Fault(
        'internal',
        'inspection_failed',
        'The node failed to inspect the sandbox; the server log has the reason',
        options,
      )
  }
}

export function toFilesFault(error: unknown): Fault {
  const restarted = toRestartFault(error)
  if (restarted) return restarted
  const options = { cause: error }
  switch (codeOf(error)) {
    case Code.ResourceExhausted:
      return new Fault(
        'unavailable',
        diskFull,
        `The files were not stored: ${messageOf(error)}`,
        options,
      )
    case Code.InvalidArgument:
      return new Fault(
        'invalid',
        'build_files_refused',
        `The files were not stored: ${messageOf(error)}`,
        options,
      )
    case Code.Unavailable:
      return busy(error)
    default:
      return new Fault(
        'internal',
        'build_files_failed',
        'The node failed to store the files; the server log has the reason',
        options,
      )
  }
}

function isDiskFull(error: unknown): boolean {
  return reasonOf(error) === diskFull
}

function reasonOf(error: unknown): string | null {
  return ConnectError.from(error).metadata.get(reasonHeader)
}

/** Passes on the node's message: it says how much space is missing and what to do. */
function diskFullFault(error: unknown, outcome?: string): Fault {
  const message = outcome === undefined ? messageOf(error) : `${messageOf(error)} ${outcome}`
  return new Fault('unavailable', diskFull, message, { cause: error })
}

function noRoom(cause: unknown): Fault {
  return new Fault(
    'unavailable',
    'sandbox_capacity_unavailable',
    'The node has no capacity for another sandbox: kill or pause one that is not needed, or try again later',
    { cause },
  )
}

function busy(cause: unknown): Fault {
  return new Fault('unavailable', 'node_busy', 'The node is busy; try again later', {
    cause,
  })
}

/** Passes on the node's message: it says what prevents the checkpoint. */
function memoryNotKept(error: unknown, hint: string): Fault {
  return new Fault('invalid', 'memory_not_kept', `${messageOf(error)}; ${hint}`, { cause: error })
}

function messageOf(error: unknown): string {
  return ConnectError.from(error).rawMessage
}

/** Passes on the node's message, which is written for API users. */
function unreadable(error: unknown): Fault {
  return new Fault('conflict', 'record_unreadable', messageOf(error), { cause: error })
}

function notFound(cause: unknown, id: string): Fault {
  return new Fault('not_found', 'sandbox_not_found', `Sandbox ${id} was not found`, { cause })
}

function codeOf(error: unknown): Code {
  return ConnectError.from(error).code
}
