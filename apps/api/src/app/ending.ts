import type { Clock } from '@atoll/kit/clock'
import { diskFull } from '@atoll/kit/disk-full'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import type { SandboxNode } from '../domain/node.ts'
import { beginKill, canBecome, end } from '../domain/sandbox.ts'
import type { Sandbox } from '../domain/sandbox.ts'
import type { SandboxStore } from '../domain/sandbox-store.ts'

/**
 * The one way to the end of a sandbox: the intention is written down first, then the node is asked, then the record
 * is closed. Each step may be repeated, so whoever comes after a crash goes on where it stopped.
 */
export interface Ending {
  /**
   * Writes down that it is to end, if `wanted` still holds for the record at that moment. Says whether an end is now
   * under way; `finish` carries it out.
   */
  begin(id: string, reason: string, wanted?: (current: Sandbox) => boolean): Promise<boolean>
  /** Returns once nothing of it is left. Callers that come while it is under way share its outcome. */
  finish(id: string): Promise<void>
  /** Both. On a full disk the sandbox goes first, which makes room for the record of its end. */
  kill(id: string, reason: string): Promise<void>
  /** Like `finish`, but never fails: a failure is logged, and the reconciler tries again. */
  tryFinish(id: string): Promise<void>
  /** The node says that it has ended. */
  ended(id: string, reason: string): Promise<void>
  /** Waits for all that is under way. */
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
        // The store cannot be written before something is deleted. Should we be killed here, the reconciler finds that the
        // sandbox is gone and closes its record.
        await node.kill(id)
        if (await begin(id, reason)) await finish(id)
      }
    },
    async tryFinish(id) {
      await finish(id).catch((error: unknown) => {
        log.warn({ err: error, sandboxId: id }, 'the node could not end a sandbox')
      })
    },
    ended: close,
    async settle() {
      await Promise.allSettled(underway.values())
    },
  }
}
