import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { randomLabel } from '@atoll/kit/id'
import type { Logger } from '@atoll/kit/log'
import type { TemplateBytes } from '../builds/template-bytes.ts'
import { mayKeep, tooMuchKept } from '../../domain/teams/limits.ts'
import { absent, isRunning } from '../../domain/sandboxes/sandbox.ts'
import type { RunningSandbox, Sandbox } from '../../domain/sandboxes/sandbox.ts'
import { beginSnapshot, backToRunning } from '../../domain/sandboxes/sandbox-pause.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import type { SnapshotStore } from '../../domain/snapshot.ts'
import { isAtLeast } from '../../domain/version.ts'
import type { OnEndChanged } from '../end-changes.ts'
import type { Fleet } from '../nodes/fleet.ts'
import type { LimitsOf } from '../teams/limits.ts'
import type { Settle } from '../sandboxes/settle.ts'
import { beingKilled, inTransition } from '../sandboxes/transitions.ts'
import type { Transitions } from '../sandboxes/transitions.ts'
import { bytesOf } from './estimate-size.ts'
import type { EstimateSize } from './estimate-size.ts'

/**
 * Copies running sandboxes on their node. The record, with its owner process, exists before the node makes the copy. A
 * copy that is neither published nor in use is orphaned and gets removed.
 */
export interface Copying {
  /**
   * Passes the copy to `use`. If `use` has not published the copy when it returns, the copy is removed. A temporary copy
   * is removed after this returns.
   */
  copy<T>(request: CopyRequest, use: (copy: Copy) => Promise<T>): Promise<T>
  /** Whether this process is using the copy. */
  isInUse(snapshotId: string): boolean
  /** Removes an unpublished copy from the node, then its record. Logs a failure; the next sweep retries. */
  discard(snapshot: { readonly id: string; readonly nodeId: string }): Promise<void>
}

export interface CopyRequest {
  readonly teamId: string
  readonly id: string
  /** Creates the fault for a paused sandbox. */
  readonly paused: (id: string) => Fault
  /** Number of sandboxes that `use` creates from a temporary copy, which it does not publish. */
  readonly copies?: number
  /** Throws a fault when the sandbox must not be copied. */
  readonly check?: (sandbox: RunningSandbox) => void
}

export interface Copy {
  readonly snapshotId: string
  readonly source: RunningSandbox
  readonly keepsMemory: boolean
}

export interface CopyPorts {
  readonly store: SandboxStore
  readonly snapshots: SnapshotStore
  readonly fleet: Fleet
  readonly clock: Clock
  readonly transitions: Transitions
  readonly settle: Settle
  readonly limitsOf: LimitsOf
  readonly estimateSize: EstimateSize
  readonly templateBytes: TemplateBytes
  readonly processId: string
  readonly log: Logger
  /** Called when the sandbox runs again: its timeout may have passed during the copy. */
  readonly onEndChanged: OnEndChanged
}

/** Writing gigabytes of memory to disk can take minutes. */
const copyLimitMs = 300_000
const deleteLimitMs = 60_000
const leastEnvdVersion = '0.5.0'

export function createCopying(ports: CopyPorts): Copying {
  const { snapshots, fleet, clock, limitsOf, estimateSize, templateBytes, processId, log } = ports
  const inUse = new Set<string>()

  const discard: Copying['discard'] = async ({ id: snapshotId, nodeId }) => {
    try {
      const limit = AbortSignal.timeout(deleteLimitMs)
      await fleet.of(nodeId).deleteSnapshot(snapshotId, limit)
      await snapshots.delete(snapshotId)
    } catch (error) {
      log.warn(
        { err: error, snapshotId },
        'a snapshot could not be removed from the node; the next pass tries again',
      )
    }
  }

  return {
    isInUse: (snapshotId) => inUse.has(snapshotId),
    discard,
    async copy(request, use) {
      const snapshotId = randomLabel(20)
      inUse.add(snapshotId)
      let written: { readonly id: string; readonly nodeId: string } | undefined
      const write = async ({ nodeId }: Sandbox): Promise<void> => {
        const { teamId, id: sandboxId } = request
        const [limits, estimate, templates] = await Promise.all([
          limitsOf(teamId),
          estimateSize({ id: sandboxId, nodeId }),
          templateBytes(teamId),
        ])
        const sizeBytes = bytesOf(estimate, true)
        const snapshot = { id: snapshotId, nodeId, teamId, sandboxId, sizeBytes }
        const begun = { holder: processId, buildId: undefined, createdAt: clock.now() }
        const record = { ...snapshot, ...begun }
        await snapshots.insert(record, (kept) => {
          const used = kept + templates
          if (!mayKeep(limits, used, sizeBytes)) throw tooMuchKept(limits, used)
        })
        written = snapshot
      }
      try {
        return await use(await copyOnNode(ports, { ...request, snapshotId, write }))
      } finally {
        const removed = remove().finally(() => inUse.delete(snapshotId))
        if (request.copies === undefined) await removed
      }

      async function remove(): Promise<void> {
        if (written && (await isUnpublished(ports, snapshotId))) await discard(written)
      }
    },
  }
}

/** Re-reads the store, even after an error in `use`: a published copy must not be removed. */
async function isUnpublished({ snapshots, log }: CopyPorts, snapshotId: string): Promise<boolean> {
  try {
    return (await snapshots.listUnpublished()).some(({ id }) => id === snapshotId)
  } catch (error) {
    log.warn(
      { err: error, snapshotId },
      'an unfinished snapshot could not be removed; the next pass tries again',
    )
    return false
  }
}

interface CopyWork extends CopyRequest {
  readonly snapshotId: string
  readonly write: (source: Sandbox) => Promise<void>
}

/** Copies the sandbox, which is running again when this returns. */
async function copyOnNode(ports: CopyPorts, work: CopyWork): Promise<Copy> {
  const { store, snapshots, fleet, transitions, processId, settle } = ports
  const { id, snapshotId } = work
  return transitions.during(id, async () => {
    let source: RunningSandbox | undefined
    await store.update(id, (found) => {
      source = checkCopyable(found, work)
      return beginSnapshot(source, processId)
    })
    if (!source) throw absent(id)
    try {
      await work.write(source)
      const limit = AbortSignal.timeout(copyLimitMs)
      const node = fleet.of(source.nodeId)
      const { copies = 0 } = work
      const snapshot = { id: snapshotId, copies }
      const { keepsMemory, sizeBytes } = await node.snapshot(source, snapshot, limit)
      if (copies === 0) await snapshots.resize(snapshotId, sizeBytes)
      return { snapshotId, source, keepsMemory }
    } catch (error) {
      const after = await settle(id).catch(() => undefined) // the reconciler settles it later
      if (after?.state === 'killing') throw beingKilled(id)
      if (after?.state === 'ended') throw absent(id, after)
      throw error
    } finally {
      await returnToRunning(ports, id)
    }
  })
}

async function returnToRunning({ store, log, onEndChanged }: CopyPorts, id: string): Promise<void> {
  await store
    .update(id, (current) => (current.state === 'snapshotting' ? backToRunning(current) : current))
    .then((after) => after && onEndChanged(after))
    .catch((error: unknown) => {
      log.warn(
        { err: error, sandboxId: id },
        'the state of a sandbox could not be restored after a copy; the reconciler does it',
      )
    })
}

function checkCopyable(sandbox: Sandbox, { teamId, paused, check }: CopyRequest): RunningSandbox {
  const { id, state } = sandbox
  if (sandbox.teamId !== teamId) throw absent(id)
  if (state === 'paused') throw paused(id)
  if (state === 'killing') throw beingKilled(id)
  if (state === 'pausing' || state === 'resuming' || state === 'snapshotting') {
    throw inTransition(sandbox)
  }
  if (!isRunning(sandbox)) throw absent(id, sandbox)
  if (!isAtLeast(sandbox.envdVersion, leastEnvdVersion)) {
    throw new Fault(
      'invalid',
      'envd_too_old',
      `Sandbox ${id} has envd ${sandbox.envdVersion}; snapshots and forks need ${leastEnvdVersion} or newer: create a new sandbox`,
    )
  }
  check?.(sandbox)
  return sandbox
}
