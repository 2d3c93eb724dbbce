import { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { SandboxSample } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Fault } from '@atoll/kit/fault'
import { Code, ConnectError, createClient } from '@connectrpc/connect'
import type { Transport } from '@connectrpc/connect'
import type { Reading } from '../domain/metrics.ts'
import type { SandboxEnd, SandboxNode } from '../domain/node.ts'
import { toFacts, toUsage } from './node-message.ts'

const killTimeoutMs = 60_000

/** The node, reached by its protocol. */
export function connectNode(transport: Transport): SandboxNode {
  const client = createClient(NodeService, transport)
  return {
    async describe(signal) {
      return toFacts(await client.getNode({}, { signal }))
    },
    async measure(signal) {
      return toUsage(await client.measureNode({}, { signal }))
    },
    async envdVersion(signal) {
      return (await client.getNode({}, { signal })).envdVersion
    },
    async create({ id, nodeTemplateId, resources, envVars, accessToken }, signal) {
      const request = {
        sandboxId: id,
        templateId: nodeTemplateId,
        ...resources,
        envVars: { ...envVars },
        ...(accessToken !== undefined && { accessToken }),
      }
      await client.createSandbox(request, { signal }).catch((error: unknown) => {
        throw toCreateFault(error)
      })
    },
    async kill(id) {
      await client.killSandbox({ sandboxId: id }, { timeoutMs: killTimeoutMs })
    },
    async list(signal) {
      const { sandboxes } = await client.listSandboxes({}, { signal })
      return sandboxes.map(({ sandboxId }) => sandboxId)
    },
    async sample(signal) {
      const { samples } = await client.sampleSandboxes({}, { signal })
      return samples.map(toReading)
    },
    async *watchEnds(signal): AsyncIterable<SandboxEnd> {
      for await (const { event } of client.watchSandboxes({}, { signal })) {
        if (event.case !== 'ended') continue
        yield { id: event.value.sandboxId, reason: event.value.reason }
      }
    },
  }
}

/** Sizes and times stay far below what a number holds exactly. */
function toReading(sample: SandboxSample): Reading {
  return {
    sandboxId: sample.sandboxId,
    cpuCount: sample.cpuCount,
    cpuUsedNs: Number(sample.cpuUsedNs),
    readAtNs: Number(sample.readAtNs),
    ageNs: Number(sample.ageNs),
    memoryUsedBytes: Number(sample.memoryUsedBytes),
    memoryCacheBytes: Number(sample.memoryCacheBytes),
    memoryTotalBytes: Number(sample.memoryTotalBytes),
    diskUsedBytes: Number(sample.diskUsedBytes),
    diskTotalBytes: Number(sample.diskTotalBytes),
  }
}

function toCreateFault(error: unknown): Fault {
  const { code } = ConnectError.from(error)
  if (code === Code.ResourceExhausted) {
    return new Fault(
      'unavailable',
      'sandbox_capacity_unavailable',
      'There is no room for another sandbox: end one that is not needed, or try again later',
      { cause: error },
    )
  }
  return new Fault(
    'internal',
    'sandbox_create_failed',
    'The sandbox could not be started; the log of the server says why',
    { cause: error },
  )
}
