import { Fault } from '@atoll/kit/fault'
import type { NodeFacts, SandboxNode } from '../../domain/node.ts'

const registerLimitMs = 5_000

interface RegisteredNode {
  facts(): Pick<NodeFacts, 'epoch'> | undefined
  register(signal: AbortSignal, by: 'request'): Promise<unknown>
}

/**
 * Runs a call to a node, and once more if the agent has restarted since the node was registered: such an agent refuses the
 * call before it does anything, so no work is done twice. All other errors may come after the work, and are rethrown.
 */
export async function repeatIfRestarted<T>(
  member: RegisteredNode,
  run: () => Promise<T>,
): Promise<T> {
  const before = member.facts()
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof Fault) || error.reason !== 'node_changed') throw error
    // Another call may have registered the node meanwhile.
    if (member.facts()?.epoch === before?.epoch) {
      // The refusal says more than what prevents the registration.
      const limit = AbortSignal.timeout(registerLimitMs)
      await member.register(limit, 'request').catch(() => Promise.reject(error))
    }
    return run()
  }
}

/**
 * Returns the operations of a node, which are repeated if its agent has restarted. `current` returns those of now: another
 * node may answer at the address. A create is not repeated here: its record has facts of the agent that gets it.
 */
export function repeatingNode(
  member: RegisteredNode & { readonly sandboxes: SandboxNode },
  current: () => SandboxNode,
): SandboxNode {
  const repeat = <T>(run: (node: SandboxNode) => Promise<T>) =>
    repeatIfRestarted(member, () => run(current()))
  return {
    ...member.sandboxes,
    describe: (signal) => repeat((node) => node.describe(signal)),
    envdVersion: (signal) => repeat((node) => node.envdVersion(signal)),
    pause: (sandbox, keepMemory, signal) =>
      repeat((node) => node.pause(sandbox, keepMemory, signal)),
    resume: (sandbox, signal) => repeat((node) => node.resume(sandbox, signal)),
    fetch: (sandbox, signal) => repeat((node) => node.fetch(sandbox, signal)),
    updateNetwork: (sandbox, network, signal) =>
      repeat((node) => node.updateNetwork(sandbox, network, signal)),
    snapshot: (sandbox, snapshot, signal) =>
      repeat((node) => node.snapshot(sandbox, snapshot, signal)),
    kill: (sandbox) => repeat((node) => node.kill(sandbox)),
    find: (id, signal) => repeat((node) => node.find(id, signal)),
  }
}
