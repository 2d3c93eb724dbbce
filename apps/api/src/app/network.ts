import { replaceEgress, rulesOf } from '../domain/network.ts'
import type { EgressWish } from '../domain/network.ts'
import type { SandboxNode } from '../domain/node.ts'
import { absent } from '../domain/sandbox.ts'
import type { SandboxStore } from '../domain/sandbox-store.ts'
import { checkChangeable } from './sandboxes.ts'

/** Replaces what may leave a running sandbox. In force when it returns, and kept for its next resume. */
export type UpdateNetwork = (teamId: string, id: string, wish: EgressWish) => Promise<void>

const updateLimitMs = 30_000

export function createUpdateNetwork(ports: {
  readonly store: SandboxStore
  readonly node: SandboxNode
}): UpdateNetwork {
  const { store, node } = ports
  /** The last update of each sandbox: the node must hear of them in the order in which they were written down. */
  const latest = new Map<string, Promise<void>>()

  async function update(teamId: string, id: string, wish: EgressWish): Promise<void> {
    const changed = await store.update(id, (current) => {
      if (current.teamId !== teamId) throw absent(id)
      checkChangeable(current)
      return replaceEgress(current, wish)
    })
    if (!changed) throw absent(id)
    await node
      .updateNetwork(id, rulesOf(changed), AbortSignal.timeout(updateLimitMs))
      .catch(async (error: unknown) => {
        // What is paused or killed meanwhile has no rules in force; a resume takes those that were written down.
        const after = await store.find(id)
        if (after) checkChangeable(after)
        throw error
      })
  }

  return async (teamId, id, wish) => {
    const before = latest.get(id) ?? Promise.resolve()
    const done = before.catch(() => {}).then(() => update(teamId, id, wish))
    latest.set(id, done)
    try {
      await done
    } finally {
      if (latest.get(id) === done) latest.delete(id)
    }
  }
}
