import type { RunningSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { Freezes } from './freezes.ts'
import type { KeyedQueue } from './keyed-queue.ts'
import type { Kill } from './kill.ts'
import type { SandboxRegistry } from './sandbox-registry.ts'

/** Passes over the running sandboxes that repair or end broken ones. */
export interface Recovery {
  /** One pass: removes sandboxes whose first process is dead, and reports the reason. */
  removeDead(): Promise<void>
  /** One pass: retries to thaw sandboxes that a copy left frozen. */
  retryThaws(): Promise<void>
  /** Freezes and thaws the sandbox, so that each of its threads runs once. Threads of a killed process then exit. */
  freezeAndThaw(sandboxId: string): Promise<void>
  /**
   * Ends the sandbox unless `isWell` returns true. No other operation on the sandbox runs meanwhile. Returns whether
   * the sandbox is well.
   */
  killUnless(
    isWell: (sandbox: RunningSandbox) => Promise<boolean>,
    sandboxId: string,
  ): Promise<boolean>
}

export function createRecovery(parts: {
  readonly registry: SandboxRegistry
  readonly queue: KeyedQueue
  readonly freezes: Freezes
  readonly kill: Kill
}): Recovery {
  const { queue, freezes, kill } = parts
  const { running } = parts.registry

  /** Runs `task` for each sandbox in its turn, unless the sandbox is gone by then. */
  async function forEach(
    sandboxes: readonly RunningSandbox[],
    task: (sandbox: RunningSandbox) => Promise<void>,
  ): Promise<void> {
    const runOne = ({ record }: RunningSandbox) =>
      queue.run(record.owner.sandboxId, async () => {
        const sandbox = running.get(record.owner.sandboxId)
        if (sandbox) await task(sandbox)
      })
    await Promise.all(sandboxes.map(runOne))
  }

  return {
    async removeDead() {
      await forEach([...running.values()].filter(kill.isDead), async (sandbox) => {
        if (kill.isDead(sandbox)) await kill.broken(sandbox)
      })
    },

    async retryThaws() {
      await forEach(freezes.dueForThaw([...running.values()]), async (sandbox) => {
        if (freezes.isStuck(sandbox.record.cellId)) await freezes.thaw(sandbox)
      })
    },

    freezeAndThaw: (sandboxId) =>
      queue.run(sandboxId, async () => {
        const sandbox = running.get(sandboxId)
        if (!sandbox || kill.isDead(sandbox)) return
        try {
          await freezes.freeze(sandbox)
        } finally {
          await freezes.thaw(sandbox)
        }
      }),

    killUnless: (isWell, sandboxId) =>
      queue.run(sandboxId, async () => {
        const sandbox = running.get(sandboxId)
        if (!sandbox || freezes.isStuck(sandbox.record.cellId)) return false
        if (await isWell(sandbox)) return true
        await kill.broken(sandbox)
        return false
      }),
  }
}
