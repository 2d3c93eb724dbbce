import type { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Code, ConnectError } from '@connectrpc/connect'
import type { ServiceImpl } from '@connectrpc/connect'
import { listPaused } from './pauses.ts'
import { checkGeneration, notFound } from './sandbox.ts'
import { toMessage } from './sandbox-message.ts'
import type { NodeState } from './sandbox.ts'
import type { simulateSnapshots } from './snapshots.ts'
import type { simulateWarmPool } from './warm-pool.ts'

/** Removes a sandbox and notifies watchers. */
function end({ running, paused, events }: NodeState, sandboxId: string, reason: string): void {
  const found = running.get(sandboxId) ?? paused.get(sandboxId)
  if (!found) return
  running.delete(sandboxId)
  paused.delete(sandboxId)
  events.publish({ case: 'ended', value: { sandboxId, generation: found.generation, reason } })
}

type Methods = Pick<
  ServiceImpl<typeof NodeService>,
  | 'createSandbox'
  | 'updateNetwork'
  | 'killSandbox'
  | 'deleteObjects'
  | 'getSandbox'
  | 'listSandboxes'
  | 'watchSandboxes'
>

interface SandboxParts {
  hasTemplate(id: string): boolean
  readonly snapshots: ReturnType<typeof simulateSnapshots>
  readonly warmPool: ReturnType<typeof simulateWarmPool>
}

/** Simulates creating, killing, listing and watching sandboxes. */
export function simulateSandboxes(state: NodeState, parts: SandboxParts) {
  const { running, paused, events, failures } = state
  const { snapshots, warmPool, hasTemplate } = parts
  const killed: string[] = []
  const methods: Methods = {
    async createSandbox({ sandboxId, accessToken, isNamed, ...spec }) {
      failures.throwIfDown()
      if (running.has(sandboxId) || paused.has(sandboxId)) {
        throw new ConnectError('taken', Code.AlreadyExists)
      }
      if (isNamed && !warmPool.take(sandboxId)) throw new ConnectError('gone', Code.Aborted)
      if (spec.snapshotId === undefined && !hasTemplate(spec.templateId)) throw notFound()
      const boots = snapshots.bootsOf(spec)
      const sandbox = { ...spec, accessToken, boots, address: state.newAddress() }
      running.set(sandboxId, sandbox)
      await failures.apply('create')
      events.publish({ case: 'started', value: toMessage(sandboxId, sandbox) })
      return { sandbox: toMessage(sandboxId, sandbox) }
    },
    async updateNetwork({ sandboxId, network, generation }) {
      await failures.apply('network')
      checkGeneration(state, { sandboxId, generation })
      const sandbox = running.get(sandboxId)
      if (!sandbox) throw notFound()
      running.set(sandboxId, { ...sandbox, network })
      await failures.apply('network', 'after')
      return {}
    },
    async killSandbox(request) {
      await failures.apply('kill')
      checkGeneration(state, request)
      killed.push(request.sandboxId)
      end(state, request.sandboxId, 'was killed')
      return {}
    },
    deleteObjects({ sandboxes }) {
      failures.throwIfDown()
      for (const ended of sandboxes) deleteStored(state, ended)
      return {}
    },
    async getSandbox({ sandboxId }) {
      await failures.apply('get')
      const sandbox = running.get(sandboxId)
      if (sandbox) return { sandbox: toMessage(sandboxId, sandbox) }
      const found = listPaused(state).find((other) => other.sandboxId === sandboxId)
      if (!found) throw notFound()
      return { sandbox: found }
    },
    listSandboxes() {
      failures.throwIfDown()
      const listed = [...running].map(([id, sandbox]) => toMessage(id, sandbox))
      return { sandboxes: [...listed, ...listPaused(state)] }
    },
    watchSandboxes: (_, { signal }) => watch(state, signal),
  }
  return { methods, killed }
}

/** Keys are as those of a pause: ID and generation. */
function deleteStored(
  { objects, running, paused }: NodeState,
  { sandboxId, generation }: { readonly sandboxId: string; readonly generation: number },
): void {
  if (running.has(sandboxId) || paused.has(sandboxId)) return
  for (const key of objects?.keys() ?? []) {
    const [id, number] = key.split('.')
    if (id === sandboxId && Number(number) <= generation) objects?.delete(key)
  }
}

/** Reports the running sandboxes, then `synced`, then each change. */
async function* watch({ running, events, failures }: NodeState, signal: AbortSignal) {
  await failures.apply('watch')
  const following = events.follow(signal)
  for (const [sandboxId, sandbox] of running) {
    yield { event: { case: 'started' as const, value: toMessage(sandboxId, sandbox) } }
    if (sandbox.isPausing) yield { event: { case: 'pausing' as const, value: { sandboxId } } }
  }
  yield { event: { case: 'synced' as const, value: {} } }
  for await (const event of following) yield { event }
}
