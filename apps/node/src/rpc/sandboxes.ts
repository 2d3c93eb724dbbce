import type { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Fault } from '@atoll/kit/fault'
import type { ServiceImpl } from '@connectrpc/connect'
import type { SandboxEvents } from '../app/lifecycle/events.ts'
import type { Sandboxes } from '../app/lifecycle/sandboxes.ts'
import type { WarmPools } from '../app/pools/warm-pools.ts'
import { checkId, shapeOf } from '../domain/sandboxes/cell.ts'
import {
  pausing,
  started,
  toEvent,
  toMessage,
  toPolicy,
  toQuarantinedMessage,
  toRules,
} from './messages.ts'

type Service = ServiceImpl<typeof NodeService>

/** Methods that change sandboxes. */
export function sandboxMethods(
  sandboxes: Sandboxes,
  pools: WarmPools,
): Pick<
  Service,
  | 'createSandbox'
  | 'nameReadySandbox'
  | 'pauseSandbox'
  | 'resumeSandbox'
  | 'snapshotSandbox'
  | 'updateNetwork'
  | 'killSandbox'
> {
  return {
    async createSandbox(request, { signal }) {
      const { sandboxId, generation, envVars, accessToken, snapshotId, isNamed } = request
      const created = await sandboxes.create({
        shape: shapeOf(request),
        owner: { sandboxId, ...(generation && { generation }), envVars, ...toPolicy(request) },
        accessToken,
        snapshotId,
        isNamed,
        signal,
      })
      return { sandbox: toMessage(created) }
    },

    async nameReadySandbox({ sandboxId, accessToken }, { signal }) {
      checkId(sandboxId)
      return pools.preassign({ sandboxId, accessToken }, signal)
    },

    async pauseSandbox({ sandboxId, keepMemory, generation }) {
      const { sizeBytes } = await sandboxes.pause(sandboxId, { keepMemory, generation })
      return { sizeBytes: BigInt(sizeBytes) }
    },

    async resumeSandbox({ sandboxId, accessToken, boot, generation, ...policy }, { signal }) {
      const request = { sandboxId, accessToken, boot, generation, ...toPolicy(policy), signal }
      return { sandbox: toMessage(await sandboxes.resume(request)) }
    },

    async snapshotSandbox({ sandboxId, snapshotId, generation, copies }) {
      const taken = await sandboxes.snapshot(sandboxId, snapshotId, { generation, copies })
      const { keepsMemory, sizeBytes } = taken
      return { keepsMemory, sizeBytes: BigInt(sizeBytes) }
    },

    async updateNetwork({ sandboxId, network, generation }) {
      const rules = network ? toRules(network) : { allowOut: [], denyOut: [] }
      await sandboxes.setNetwork(sandboxId, rules, generation)
      return {}
    },

    async killSandbox({ sandboxId, generation }) {
      await sandboxes.kill(sandboxId, { generation })
      return {}
    },
  }
}

/** Methods that list sandboxes and report their changes. */
export function sandboxViewMethods(
  sandboxes: Sandboxes,
  events: SandboxEvents,
): Pick<Service, 'getSandbox' | 'listSandboxes' | 'watchSandboxes'> {
  return {
    getSandbox({ sandboxId }) {
      const sandbox = sandboxes.get(sandboxId)
      if (!sandbox && sandboxes.isQuarantined(sandboxId)) {
        return { sandbox: toQuarantinedMessage(sandboxId) }
      }
      if (!sandbox)
        throw new Fault(
          'not_found',
          'sandbox_not_found',
          `Sandbox ${sandboxId} does not exist on this node`,
        )
      return { sandbox: toMessage(sandbox, sandboxes.isPausing(sandboxId)) }
    },

    listSandboxes: () => ({
      sandboxes: [
        ...sandboxes
          .running()
          .map((one) => toMessage(one, sandboxes.isPausing(one.record.owner.sandboxId))),
        ...sandboxes.paused().map((one) => toMessage(one)),
        ...sandboxes.quarantined().map(toQuarantinedMessage),
      ],
    }),

    async *watchSandboxes(_request, { signal }) {
      // Subscribe before reading the list: an event in between is seen twice rather than never.
      const changes = events.watch(signal)
      for (const sandbox of sandboxes.running()) {
        yield started(sandbox)
        const { sandboxId } = sandbox.record.owner
        if (sandboxes.isPausing(sandboxId)) yield pausing(sandboxId)
      }
      yield { event: { case: 'synced' as const, value: {} } }
      for await (const event of changes) yield toEvent(event)
    },
  }
}
