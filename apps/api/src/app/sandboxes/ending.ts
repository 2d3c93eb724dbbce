import type { Clock } from '@atoll/kit/clock'
import { diskFull } from '@atoll/kit/disk-full'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import type { SandboxEnd, SandboxNode, SandboxRef } from '../../domain/node.ts'
import { beginKill, canBecome, end, requestKill } from '../../domain/sandboxes/sandbox.ts'
import type { Sandbox } from '../../domain/sandboxes/sandbox.ts'
import { takeBackKill } from '../../domain/sandboxes/sandbox-pause.ts'
import type { PausedOnNode } from '../../domain/sandboxes/sandbox-pause.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'

/**
 * The only way to end a sandbox: record the intention, kill the sandbox on its node, close the record. Each step is
 * idempotent, so a kill that was interrupted by a crash can be resumed. A kill that no client asked for never deletes a sandbox
 * that its node has paused: the store may be older than the pause (decision 63).
 */
export interface Ending {
  /**
   * Marks the sandbox as `killing` if `wanted` still holds for its record. Returns the record if it is `killing` now;
   * call `finish` to carry out the kill. No client asked for this end: `kill` is for requests.
   */
  begin(
    id: string,
    reason: string,
    wanted?: (current: Sandbox) => boolean,
  ): Promise<Sandbox | undefined>
  /**
   * Returns once nothing of the sandbox is left on this node, or once it is kept because no client asked for its end. Concurrent
   * callers share one outcome.
   */
  finish(sandbox: OnOneNode): Promise<void>
  /**
   * Ends a sandbox at the request of a client or an operator, and notes the request in the record. Returns after that if the
   * node does not answer: the reconciler kills the sandbox when the node is back. On a full disk, kills the sandbox first to
   * free space for the record.
   */
  kill(id: string, reason: string): Promise<void>
  /** Runs `finish` but never throws: logs a failure, and the reconciler retries. */
  tryFinish(sandbox: OnOneNode): Promise<void>
  /** Closes the record after the node reported the end, unless the sandbox has been started again or elsewhere. */
  ended(nodeId: string, end: SandboxEnd): Promise<void>
  /** Waits for all kills in progress. */
  settle(): Promise<void>
}

/** A sandbox and the node that has it, which need not be the node in its record. */
export interface OnOneNode extends SandboxRef {
  readonly nodeId: string
  /** Whether the sandbox lives on another node: only this node forgets it. */
  readonly isElsewhere?: boolean
  /** Whether a client or an operator asked for the end. */
  readonly isKillRequested?: boolean | undefined
  /** Whether the content on this node is known to be outdated, or a copy. */
  readonly isSuperseded?: boolean
}

interface EndingPorts {
  readonly store: Pick<SandboxStore, 'update'> & {
    find(id: string): Promise<OnOneNode | undefined>
  }
  readonly fleet: { of(nodeId: string): Pick<SandboxNode, 'find' | 'kill'> }
  readonly clock: Clock
  readonly log: Logger
}

const findTimeoutMs = 10_000

export function createEnding(ports: EndingPorts): Ending {
  const { store, fleet, log } = ports
  const underway = new Map<string, Promise<void>>()

  const begin: Ending['begin'] = async (id, reason, wanted = () => true) => {
    const changed = await store.update(id, (current) =>
      canBecome(current.state, 'killing') && wanted(current) ? beginKill(current, reason) : current,
    )
    return changed?.state === 'killing' ? changed : undefined
  }
  const finish = (sandbox: OnOneNode): Promise<void> => {
    // A kill also deletes objects, so it must not join the work of forgetting, nor may a request join a kill that can end with
    // a kept sandbox.
    const key = `${sandbox.nodeId} ${sandbox.id} ${sandbox.isElsewhere ?? false} ${mayDeletePaused(sandbox)}`
    const current = underway.get(key)
    if (current) return current
    const begun = killAndClose(ports, sandbox).finally(() => underway.delete(key))
    underway.set(key, begun)
    return begun
  }
  const beginAndFinish = async (id: string, reason: string): Promise<void> => {
    const sandbox = await store.update(id, (current) => requestKill(current, reason))
    if (sandbox?.state === 'killing') await finish(sandbox).catch(toleratesAbsence(log, id))
  }

  return {
    begin,
    finish,
    async kill(id, reason) {
      try {
        await beginAndFinish(id, reason)
      } catch (error) {
        if (!(error instanceof Fault) || error.reason !== diskFull) throw error
        // The store cannot write until something is deleted. After a crash here, the reconciler finds the sandbox
        // missing on its node and closes its record.
        const sandbox = await store.find(id)
        if (sandbox) await fleet.of(sandbox.nodeId).kill(sandbox)
        await beginAndFinish(id, reason)
      }
    },
    async tryFinish(sandbox) {
      await finish(sandbox).catch((error: unknown) => {
        log.warn(
          { err: error, sandboxId: sandbox.id },
          'the node failed to kill a sandbox; the reconciler tries again',
        )
      })
    },
    ended: (nodeId, { id, generation, reason }) =>
      close(
        ports,
        { id, reason },
        (current) => current.nodeId === nodeId && current.generation <= generation,
      ),
    async settle() {
      await Promise.allSettled(underway.values())
    },
  }
}

/** Rethrows errors, except that the node does not answer. */
function toleratesAbsence(log: Logger, sandboxId: string): (error: unknown) => void {
  return (error) => {
    const reason = error instanceof Fault ? error.reason : undefined
    if (reason !== 'node_unavailable' && reason !== 'node_changed') throw error
    log.warn({ err: error, sandboxId }, 'the node does not answer; it kills the sandbox later')
  }
}

function mayDeletePaused({ isKillRequested = false, isSuperseded = false }: OnOneNode): boolean {
  return isKillRequested || isSuperseded
}

async function killAndClose(ports: EndingPorts, sandbox: OnOneNode): Promise<void> {
  const { id, nodeId, isElsewhere = false } = sandbox
  const node = ports.fleet.of(nodeId)
  if (mayDeletePaused(sandbox)) await node.kill(sandbox)
  else {
    const found = await node.find(id, AbortSignal.timeout(findTimeoutMs))
    if (found?.state === 'paused') return keepPaused(ports, sandbox, found)
    const isRunning = found?.state === 'running'
    if (isRunning && found.isPausing) throw stillPausing(id)
    // Objects of a sandbox that does not run here may be its only copy. Another pass deletes the objects that the record
    // knows of.
    await node.kill({ ...sandbox, isElsewhere: isElsewhere || !isRunning })
  }
  if (isElsewhere) return
  await close(ports, { id, reason: 'was killed' }, (current) => current.nodeId === nodeId)
}

async function keepPaused(
  { store, clock, log }: EndingPorts,
  { id, nodeId }: OnOneNode,
  found: PausedOnNode,
): Promise<void> {
  log.warn(
    { event: 'sandbox.kept', sandboxId: id, nodeId },
    'A sandbox that was to end without a request is paused on its node, so it is kept: the store is older than the pause',
  )
  await store.update(id, (current) =>
    current.nodeId === nodeId ? takeBackKill(current, found, clock.now()) : current,
  )
}

/** Only the log shows this error; the next attempt finds the sandbox paused or running. */
function stillPausing(id: string): Error {
  return new Error(`Sandbox ${id} is being paused on its node, and no client asked for its end`)
}

async function close(
  { store, clock }: EndingPorts,
  { id, reason }: { readonly id: string; readonly reason: string },
  isMeant: (current: Sandbox) => boolean,
): Promise<void> {
  await store.update(id, (current) =>
    canBecome(current.state, 'ended') && isMeant(current)
      ? end(current, clock.now(), reason)
      : current,
  )
}
