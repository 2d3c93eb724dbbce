import { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Code, ConnectError, createClient } from '@connectrpc/connect'
import type { Client, Transport } from '@connectrpc/connect'
import type { SandboxEnd, SandboxNode } from '../domain/node.ts'
import {
  toAbsenceFault,
  toFetchFault,
  toCreateFault,
  toFenceFault,
  toNetworkFault,
  toNodeFault,
  toPauseFault,
  toResumeFault,
  toSnapshotFault,
} from './node-faults.ts'
import { toNetworkAccess, toRules } from './network-message.ts'
import { toFacts, toOnNode, toReading, toUsage } from './node-message.ts'

const killTimeoutMs = 60_000
const fetchWaitSeconds = 10

type NodeClient = Client<typeof NodeService>

/** Creates the client for sandboxes on the node. */
export function connectNode(transport: Transport): SandboxNode {
  const client = createClient(NodeService, transport)
  return {
    ...nodeMethods(client),
    ...sandboxMethods(client),
    ...movingMethods(client),
    ...snapshotMethods(client),
    ...queryMethods(client),
  }
}

function throwNodeFault(error: unknown): never {
  throw toNodeFault(error) ?? error
}

function nodeMethods(
  client: NodeClient,
): Pick<SandboxNode, 'describe' | 'measure' | 'envdVersion' | 'nameReady'> {
  return {
    async describe(signal) {
      return toFacts(await client.getNode({}, { signal }).catch(throwNodeFault))
    },
    async measure(signal) {
      return toUsage(await client.measureNode({}, { signal }))
    },
    async envdVersion(signal) {
      const { envdVersion } = await client.getNode({}, { signal }).catch(throwNodeFault)
      return envdVersion
    },
    async nameReady(id, accessToken, signal) {
      const request = { sandboxId: id, accessToken }
      const { templateId, cpuCount, memoryMb, diskSizeMb } = await client.nameReadySandbox(
        request,
        {
          signal,
        },
      )
      return { nodeTemplateId: templateId, cpuCount, memoryMb, diskSizeMb }
    },
  }
}

function sandboxMethods(
  client: NodeClient,
): Pick<SandboxNode, 'create' | 'pause' | 'resume' | 'updateNetwork'> {
  return {
    async create(
      { id, generation, nodeTemplateId, snapshotId, resources, envVars, isNamed, ...given },
      signal,
    ) {
      const request = {
        sandboxId: id,
        generation,
        templateId: nodeTemplateId,
        ...resources,
        envVars: { ...envVars },
        isNamed,
        ...(snapshotId !== undefined && { snapshotId }),
        ...toNetworkAccess(given),
      }
      await client.createSandbox(request, { signal }).catch((error: unknown) => {
        throw toCreateFault(error, id)
      })
    },
    async pause({ id, generation }, keepMemory, signal) {
      const { sizeBytes, keptId } = await client
        .pauseSandbox({ sandboxId: id, generation, keepMemory }, { signal })
        .catch((error: unknown) => {
          throw toPauseFault(error, id)
        })
      return { sizeBytes: Number(sizeBytes), keptId: keptId === '' ? undefined : keptId }
    },
    async resume({ id, generation, boot, keptGeneration = 0, ...given }, signal) {
      const content = { sandboxId: id, generation, keptGeneration, boot }
      await client
        .resumeSandbox({ ...content, ...toNetworkAccess(given) }, { signal })
        .catch((error: unknown) => {
          throw toResumeFault(error, id)
        })
    },
    async updateNetwork({ id, generation }, network, signal) {
      await client
        .updateNetwork({ sandboxId: id, generation, network: toRules(network) }, { signal })
        .catch((error: unknown) => {
          throw toNetworkFault(error, id)
        })
    },
  }
}

/** Methods that also concern the object store. */
function movingMethods(
  client: NodeClient,
): Pick<SandboxNode, 'fetch' | 'kill' | 'deleteObjects' | 'findStored'> {
  return {
    async fetch({ id, keptId = '', ...content }, signal) {
      const request = { sandboxId: id, keptId, ...content, waitSeconds: fetchWaitSeconds }
      const { isUnderway, receivedBytes } = await client
        .fetchSandbox(request, { signal })
        .catch((error: unknown) => {
          throw toFetchFault(error, id)
        })
      return { isUnderway, receivedBytes: Number(receivedBytes) }
    },
    async kill({ id, generation, isElsewhere = false }) {
      const request = { sandboxId: id, generation, deleteObjects: !isElsewhere }
      await client.killSandbox(request, { timeoutMs: killTimeoutMs }).catch((error: unknown) => {
        throw toFenceFault(error, id) ?? toAbsenceFault(error) ?? error
      })
    },
    async deleteObjects(ended, signal) {
      const sandboxes = ended.map(({ id, generation }) => ({ sandboxId: id, generation }))
      await client.deleteObjects({ sandboxes }, { signal })
    },
    async findStored({ contents, snapshotIds, nodeTemplateIds }, signal) {
      const request = {
        contents: contents.map(({ id, ...content }) => ({ sandboxId: id, ...content })),
        snapshotIds: [...snapshotIds],
        templateIds: [...nodeTemplateIds],
      }
      try {
        const found = await client.findStored(request, { signal })
        return {
          contents: found.contents.map(({ sandboxId: id, keptGeneration, keptId }) => ({
            ...{ id, keptGeneration, keptId },
          })),
          snapshotIds: found.snapshotIds,
          nodeTemplateIds: found.templateIds,
        }
      } catch (error) {
        if (ConnectError.from(error).code === Code.Unimplemented) return undefined
        return throwNodeFault(error)
      }
    },
  }
}

function snapshotMethods(
  client: NodeClient,
): Pick<SandboxNode, 'snapshot' | 'deleteSnapshot' | 'listSnapshots'> {
  return {
    async snapshot({ id, generation }, { id: snapshotId, copies }, signal) {
      const { keepsMemory, sizeBytes } = await client
        .snapshotSandbox({ sandboxId: id, generation, snapshotId, copies }, { signal })
        .catch((error: unknown) => {
          throw toSnapshotFault(error, id)
        })
      return { keepsMemory, sizeBytes: Number(sizeBytes) }
    },
    async deleteSnapshot(snapshotId, signal) {
      await client.deleteSnapshot({ snapshotId, deleteObjects: true }, { signal })
    },
    async listSnapshots(signal) {
      const { snapshotIds: ids, durableIds } = await client.listSnapshots({}, { signal })
      return { ids, durableIds }
    },
  }
}

function queryMethods(
  client: NodeClient,
): Pick<SandboxNode, 'find' | 'list' | 'sample' | 'watchEnds'> {
  return {
    async find(id, signal) {
      try {
        const { sandbox } = await client.getSandbox({ sandboxId: id }, { signal })
        return sandbox && toOnNode(sandbox)
      } catch (error) {
        if (ConnectError.from(error).code === Code.NotFound) return undefined
        return throwNodeFault(error)
      }
    },
    async list(signal) {
      const { sandboxes } = await client.listSandboxes({}, { signal })
      return new Map(sandboxes.map((sandbox) => [sandbox.sandboxId, toOnNode(sandbox)]))
    },
    async sample(signal, id) {
      const { samples } = await client.sampleSandboxes({ sandboxId: id }, { signal })
      return samples.map(toReading)
    },
    async *watchEnds(signal): AsyncIterable<SandboxEnd> {
      for await (const { event } of client.watchSandboxes({}, { signal })) {
        if (event.case !== 'ended') continue
        const { sandboxId: id, reason, generation } = event.value
        yield { id, reason, generation }
      }
    },
  }
}
