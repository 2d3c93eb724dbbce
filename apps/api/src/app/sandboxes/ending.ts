import type { Clock } from '@atoll/kit/clock'
import { diskFull } from '@atoll/kit/disk-full'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import type { SandboxEnd, SandboxNode, SandboxRef } from '../../domain/node.ts'
import { beginKill, canBecome, end } from '../../domain/sandboxes/sandbox.ts'
import type { Sandbox } from '../../domain/sandboxes/sandbox.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'

/**
 * The only way to end a sandbox: record the intention, kill the sandbox on its node, close the record. Each step is
 * idempotent, so a kill that was interrupted by a crash can be resumed.
 */
export interface Ending {
  /**
   * Marks the sandbox as `killing` if `wanted` still holds for its record. Returns the record if it is `killing` now;
   * call `finish` to carry out the kill.
   */
  begin(
    id: string,
    reason: string,
    wanted?: (current: Sandbox) => boolean,
  ): Promise<Sandbox | undefined>
  /** Returns once nothing of the sandbox is left on this node. Concurrent callers share one outcome. */
  finish(sandbox: OnOneNode): Promise<void>
  /**
   * Runs `begin` and `finish`. Returns after `begin` if the node does not answer: the reconciler kills the sandbox when the
   * node is back. On a full disk, kills the sandbox first to free space for the record.
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
}

interface EndingPorts {
  readonly store: Pick<SandboxStore, 'update'> & {
    find(id: string): Promise<OnOneNode | undefined>
  }
  readonly fleet: { of(nodeId: string): Pick<SandboxNode, 'kill'> }
  readonly clock: Clock
  readonly log: Logger
}

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
    // A kill also deletes objects, so it must not join the work of forgetting.
    const key = `${sandbox.nodeId} ${sandbox.id} ${sandbox.isElsewhere ?? false}`
    const current = underway.get(key)
    if (current) return current
    const begun = killAndClose(ports, sandbox).finally(() => underway.delete(key))
    underway.set(key, begun)
    return begun
  }
  const beginAndFinish = async (id: string, reason: string): Promise<void> => {
    const sandbox = await begin(id, reason)
    if (sandbox) await finish(sandbox).catch(toleratesAbsence(log, id))
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

async function killAndClose(ports: EndingPorts, sandbox: OnOneNode): Promise<void> {
  const { id, nodeId, isElsewhere = false } = sandbox
  await ports.fleet.of(nodeId).kill(sandbox)
  if (isElsewhere) return
  await close(ports, { id, reason: 'was killed' }, (current) => current.nodeId === nodeId)
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
