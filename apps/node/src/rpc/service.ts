import { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import { createRouterTransport } from '@connectrpc/connect'
import type { ServiceImpl, Transport } from '@connectrpc/connect'
import type { Builds } from '../app/builds/builds.ts'
import type { SandboxLogs } from '../app/logs/collect-logs.ts'
import type { SandboxEvents } from '../app/lifecycle/events.ts'
import type { SandboxSample } from '../app/health/usage-samples.ts'
import type { Sandboxes } from '../app/lifecycle/sandboxes.ts'
import type { WarmPools } from '../app/pools/warm-pools.ts'
import { checkId, shapeOf } from '../domain/sandboxes/cell.ts'
import type { MachineFacts, MachineUsage } from '../domain/host/machine.ts'
import type { SnapshotStore } from '../domain/sandboxes/snapshot.ts'
import { buildMethods } from './builds.ts'
import type { BuildStores } from './builds.ts'
import { logMethods } from './logs.ts'
import {
  pausing,
  started,
  toEvent,
  toMessage,
  toPolicy,
  toQuarantinedMessage,
  toRules,
} from './messages.ts'
import { reportFaults } from './report-faults.ts'

/** Serves the node protocol in memory. */
export function serveInMemory(parts: ServiceParts, log: Logger): Transport {
  return createRouterTransport((router) => router.service(NodeService, nodeService(parts)), {
    router: { interceptors: [reportFaults(log)] },
  })
}

export interface ServiceParts {
  readonly sandboxes: Sandboxes
  readonly snapshots: SnapshotStore
  readonly pools: WarmPools
  readonly builds: Builds
  readonly files: BuildStores
  readonly logs: SandboxLogs
  readonly events: SandboxEvents
  readonly sample: (sandboxId: string | undefined) => Promise<SandboxSample[]>
  readonly facts: {
    readonly nodeId: string
    readonly runtime: string
    readonly envdVersion: string
    readonly templateIds: string[]
    readonly instanceId: string
    readonly version: string
    readonly machine: MachineFacts
    readonly keepsMemory: boolean
  }
  readonly measure: () => Promise<MachineUsage>
}

function nodeService({
  sandboxes,
  snapshots,
  pools,
  builds,
  files,
  logs,
  events,
  sample,
  facts,
  measure,
}: ServiceParts): ServiceImpl<typeof NodeService> {
  return {
    getNode: () => facts,

    async measureNode() {
      const running = sandboxes.running().map(({ record }) => record)
      const { memoryTotalBytes, memoryUsedBytes, hugePages, disks, ...usage } = await measure()
      return {
        ...usage,
        sandboxCount: running.length,
        pausedCount: sandboxes.paused().length,
        pools: pools.list().map(({ shape, ready, target }) => ({
          templateId: shape.templateId,
          ready,
          target,
        })),
        allocatedCpuCount: sum(running.map(({ cpuCount }) => cpuCount)),
        allocatedMemoryBytes: BigInt(sum(running.map(({ memoryMb }) => memoryMb))) * 1024n * 1024n,
        memoryTotalBytes: BigInt(memoryTotalBytes),
        memoryUsedBytes: BigInt(memoryUsedBytes),
        hugePages: {
          total: BigInt(hugePages.total),
          used: BigInt(hugePages.used),
          reserved: BigInt(hugePages.reserved),
          pageSizeBytes: BigInt(hugePages.pageSizeBytes),
        },
        disks: disks.map(({ usedBytes, totalBytes, ...disk }) => ({
          ...disk,
          usedBytes: BigInt(usedBytes),
          totalBytes: BigInt(totalBytes),
        })),
      }
    },

    async createSandbox(request, { signal }) {
      const { sandboxId, envVars, accessToken, snapshotId, isNamed } = request
      const created = await sandboxes.create({
        shape: shapeOf(request),
        owner: { sandboxId, envVars, ...toPolicy(request) },
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

    async pauseSandbox({ sandboxId, keepMemory }) {
      const { sizeBytes } = await sandboxes.pause(sandboxId, { keepMemory })
      return { sizeBytes: BigInt(sizeBytes) }
    },

    async resumeSandbox({ sandboxId, accessToken, boot, ...policy }, { signal }) {
      const request = { sandboxId, accessToken, boot, ...toPolicy(policy), signal }
      return { sandbox: toMessage(await sandboxes.resume(request)) }
    },

    async snapshotSandbox({ sandboxId, snapshotId }) {
      const { keepsMemory, sizeBytes } = await sandboxes.snapshot(sandboxId, snapshotId)
      return { keepsMemory, sizeBytes: BigInt(sizeBytes) }
    },

    async deleteSnapshot({ snapshotId }) {
      checkId(snapshotId)
      await snapshots.remove(snapshotId)
      return {}
    },

    async listSnapshots() {
      return { snapshotIds: (await snapshots.list()).map(({ snapshotId }) => snapshotId) }
    },

    async updateNetwork({ sandboxId, network }) {
      const rules = network ? toRules(network) : { allowOut: [], denyOut: [] }
      await sandboxes.setNetwork(sandboxId, rules)
      return {}
    },

    async killSandbox({ sandboxId }) {
      await sandboxes.kill(sandboxId)
      return {}
    },

    getSandbox({ sandboxId }) {
      const sandbox = sandboxes.get(sandboxId)
      if (!sandbox && sandboxes.isQuarantined(sandboxId)) {
        return { sandbox: toQuarantinedMessage(sandboxId) }
      }
      if (!sandbox)
        throw new Fault('not_found', 'sandbox_not_found', `No sandbox ${sandboxId} here`)
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

    sampleSandboxes: async ({ sandboxId }) => ({ samples: await sample(sandboxId) }),

    ...logMethods(logs),
    ...buildMethods(builds, files),

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

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0)
}
