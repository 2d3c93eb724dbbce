import type { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Code, ConnectError } from '@connectrpc/connect'
import type { ServiceImpl } from '@connectrpc/connect'
import { listPaused } from './pauses.ts'
import { notFound, toRunning } from './sandbox.ts'
import type { NodeState } from './sandbox.ts'
import type { simulateSnapshots } from './snapshots.ts'
import type { simulateWarmPool } from './warm-pool.ts'

type Methods = Pick<
  ServiceImpl<typeof NodeService>,
  | 'createSandbox'
  | 'updateNetwork'
  | 'killSandbox'
  | 'getSandbox'
  | 'listSandboxes'
  | 'watchSandboxes'
>

interface SandboxParts {
  readonly snapshots: ReturnType<typeof simulateSnapshots>
  readonly warmPool: ReturnType<typeof simulateWarmPool>
}

/** Simulates creating, killing, listing and watching sandboxes. */
export function simulateSandboxes(state: NodeState, { snapshots, warmPool }: SandboxParts) {
  const { running, paused, events, failures } = state
  const killed: string[] = []
  const methods: Methods = {
    async createSandbox({ sandboxId, accessToken, isNamed, ...spec }) {
      failures.throwIfDown()
      if (running.has(sandboxId)) throw new ConnectError('taken', Code.AlreadyExists)
      if (isNamed && !warmPool.take(sandboxId)) throw new ConnectError('gone', Code.Aborted)
      running.set(sandboxId, { ...spec, accessToken, boots: snapshots.bootsOf(spec) })
      await failures.apply('create')
      events.publish({ case: 'started', value: toRunning(sandboxId) })
      return { sandbox: toRunning(sandboxId) }
    },
    async updateNetwork({ sandboxId, network }) {
      await failures.apply('network')
      const sandbox = running.get(sandboxId)
      if (!sandbox) throw notFound()
      running.set(sandboxId, { ...sandbox, network })
      await failures.apply('network', 'after')
      return {}
    },
    async killSandbox({ sandboxId }) {
      await failures.apply('kill')
      killed.push(sandboxId)
      if (running.delete(sandboxId) || paused.delete(sandboxId)) {
        events.publish({ case: 'ended', value: { sandboxId, reason: 'was killed' } })
      }
      return {}
    },
    getSandbox({ sandboxId }) {
      failures.throwIfDown()
      if (running.has(sandboxId)) return { sandbox: toRunning(sandboxId) }
      const found = listPaused(paused).find((sandbox) => sandbox.sandboxId === sandboxId)
      if (!found) throw notFound()
      return { sandbox: found }
    },
    listSandboxes() {
      failures.throwIfDown()
      return { sandboxes: [...[...running.keys()].map(toRunning), ...listPaused(paused)] }
    },
    async *watchSandboxes(_, { signal }) {
      failures.throwIfDown()
      const following = events.follow(signal)
      for (const id of running.keys()) yield { event: { case: 'started', value: toRunning(id) } }
      yield { event: { case: 'synced', value: {} } }
      for await (const event of following) yield { event }
    },
  }
  return { methods, killed }
}
