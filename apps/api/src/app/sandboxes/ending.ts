import type { Clock } from '@atoll/kit/clock'
import { diskFull } from '@atoll/kit/disk-full'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import type { SandboxNode } from '../../domain/node.ts'
import { beginKill, canBecome, end } from '../../domain/sandboxes/sandbox.ts'
import type { Sandbox } from '../../domain/sandboxes/sandbox.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'

/**
 * The only way to end a sandbox: record the intention, kill the sandbox on the node, close the record. Each step is
 * idempotent, so a kill that was interrupted by a crash can be resumed.
 */
export interface Ending {
  /**
   * Marks the sandbox as `killing` if `wanted` still holds for its record. Returns whether it is `killing` now; call
   * `finish` to carry out the kill.
   */
  begin(id: string, reason: string, wanted?: (current: Sandbox) => boolean): Promise<boolean>
  /** Returns once nothing of the sandbox is left. Concurrent callers share one outcome. */
  finish(id: string): Promise<void>
  /** Runs `begin` and `finish`. On a full disk, kills the sandbox first to free space for the record. */
  kill(id: string, reason: string): Promise<void>
  /** Runs `finish` but never throws: logs a failure, and the reconciler retries. */
  tryFinish(id: string): Promise<void>
  /** Closes the record after the node reported the end. */
  ended(id: string, reason: string): Promise<void>
  /** Waits for all kills in progress. */
  settle(): Promise<void>
}

export function createEnding(deps: {
  readonly store: Pick<SandboxStore, 'update'>
  readonly node: Pick<SandboxNode, 'kill'>
  readonly clock: Clock
  readonly log: Logger
}): Ending {
  const { store, node, clock, log } = deps
  const underway = new Map<string, Promise<void>>()

  const close = async (id: string, reason: string): Promise<void> => {
    await store.update(id, (current) =>
      canBecome(current.state, 'ended') ? end(current, clock.now(), reason) : current,
    )
  }
  const kill = async (id: string): Promise<void> => {
    await node.kill(id)
    await close(id, 'was killed')
  }
  const begin: Ending['begin'] = async (id, reason, wanted = () => true) => {
    const changed = await store.update(id, (current) =>
      canBecome(current.state, 'killing') && wanted(current) ? beginKill(current, reason) : current,
    )
    return changed?.state === 'killing'
  }
  const finish = (id: string): Promise<void> => {
    const current = underway.get(id)
    if (current) return current
    const begun = kill(id).finally(() => underway.delete(id))
    underway.set(id, begun)
    return begun
  }

  return {
    begin,
    finish,
    async kill(id, reason) {
      try {
        if (await begin(id, reason)) await finish(id)
      } catch (error) {
        if (!(error instanceof Fault) || error.reason !== diskFull) throw error
        // The store cannot write until something is deleted. After a crash here, the reconciler finds the sandbox
        // missing on the node and closes its record.
        await node.kill(id)
        if (await begin(id, reason)) await finish(id)
      }
    },
    async tryFinish(id) {
      await finish(id).catch((error: unknown) => {
        log.warn(
          { err: error, sandboxId: id },
          'the node failed to kill a sandbox; the reconciler tries again',
        )
      })
    },
    ended: close,
    async settle() {
      await Promise.allSettled(underway.values())
    },
  }
}
