import { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Fault } from '@atoll/kit/fault'
import type { FaultKind } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import { Code, ConnectError, createRouterTransport } from '@connectrpc/connect'
import type { Interceptor, ServiceImpl, Transport } from '@connectrpc/connect'
import type { SandboxEvent, SandboxEvents } from '../app/events.ts'
import type { SandboxSample } from '../app/sample.ts'
import type { Sandboxes } from '../app/sandboxes.ts'
import type { MachineFacts, MachineUsage } from '../domain/machine.ts'
import type { RunningSandbox } from '../domain/sandbox.ts'

/** The node protocol, served in memory. */
export function serveInMemory(parts: ServiceParts, log: Logger): Transport {
  return createRouterTransport((router) => router.service(NodeService, nodeService(parts)), {
    router: { interceptors: [reportFaults(log)] },
  })
}

export interface ServiceParts {
  readonly sandboxes: Sandboxes
  readonly events: SandboxEvents
  readonly sample: () => Promise<SandboxSample[]>
  readonly facts: {
    readonly nodeId: string
    readonly runtime: string
    readonly envdVersion: string
    readonly templateIds: string[]
    readonly instanceId: string
    readonly version: string
    readonly machine: MachineFacts
  }
  readonly measure: () => Promise<MachineUsage>
}

function nodeService({
  sandboxes,
  events,
  sample,
  facts,
  measure,
}: ServiceParts): Partial<ServiceImpl<typeof NodeService>> {
  return {
    getNode: () => facts,

    async measureNode() {
      const running = sandboxes.list().map(({ record }) => record)
      const { memoryTotalBytes, memoryUsedBytes, hugePages, disks, ...usage } = await measure()
      return {
        ...usage,
        sandboxCount: running.length,
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

    async createSandbox({ accessToken, envVars, ...spec }, { signal }) {
      const { sandboxId, templateId, cpuCount, memoryMb, diskSizeMb } = spec
      const introduction = { sandboxId, templateId, accessToken, envVars, cpuCount, memoryMb }
      const created = await sandboxes.create({
        spec: { sandboxId, templateId, cpuCount, memoryMb, diskSizeMb },
        introduction,
        signal,
      })
      return { sandbox: toMessage(created) }
    },

    async killSandbox({ sandboxId }) {
      await sandboxes.kill(sandboxId)
      return {}
    },

    getSandbox({ sandboxId }) {
      const sandbox = sandboxes.get(sandboxId)
      if (!sandbox)
        throw new Fault('not_found', 'sandbox_not_found', `No sandbox ${sandboxId} here`)
      return { sandbox: toMessage(sandbox) }
    },

    listSandboxes: () => ({ sandboxes: sandboxes.list().map(toMessage) }),

    sampleSandboxes: async () => ({ samples: await sample() }),

    async *watchSandboxes(_request, { signal }) {
      // Subscribed before the list is read: what happens in between is seen twice rather than never.
      const changes = events.watch(signal)
      for (const sandbox of sandboxes.list()) yield started(sandbox)
      yield { event: { case: 'synced' as const, value: {} } }
      for await (const event of changes) yield toEvent(event)
    },
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0)
}

function toEvent(event: SandboxEvent) {
  if (event.kind === 'started') return started(event.sandbox)
  const { sandboxId, reason } = event
  return { event: { case: 'ended' as const, value: { sandboxId, reason } } }
}

function started(sandbox: RunningSandbox) {
  return { event: { case: 'started' as const, value: toMessage(sandbox) } }
}

function toMessage({ record, slot }: RunningSandbox) {
  return { sandboxId: record.sandboxId, address: slot.sandboxAddress }
}

/** The one place that turns faults into codes; what was not foreseen is logged here and stays on our side. */
function reportFaults(log: Logger): Interceptor {
  return (next) => async (request) => {
    try {
      return await next(request)
    } catch (thrown) {
      if (thrown instanceof ConnectError) throw thrown
      const fault = Fault.from(thrown)
      if (fault.kind === 'internal') {
        log.error(
          { err: fault.cause ?? fault, event: `node.${request.method.name}` },
          fault.message,
        )
      }
      throw new ConnectError(fault.message, codes[fault.kind], undefined, undefined, fault)
    }
  }
}

const codes = {
  invalid: Code.InvalidArgument,
  unauthenticated: Code.Unauthenticated,
  forbidden: Code.PermissionDenied,
  not_found: Code.NotFound,
  conflict: Code.AlreadyExists,
  exhausted: Code.ResourceExhausted,
  timeout: Code.DeadlineExceeded,
  unavailable: Code.Unavailable,
  internal: Code.Internal,
} satisfies Record<FaultKind, Code>
