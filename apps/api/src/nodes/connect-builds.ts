import { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { BuildTemplateResponse } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { createClient } from '@connectrpc/connect'
import type { Transport } from '@connectrpc/connect'
import type { BuildEvent, BuildFiles, BuildNode, BuildOrder } from '../domain/builds/build-node.ts'
import { levelNames } from './log-level.ts'
import { toFilesFault } from './node-faults.ts'

/** Client for builds on the node. */
export function connectBuilds(transport: Transport): BuildNode {
  const client = createClient(NodeService, transport)
  return {
    async *build(order, signal) {
      for await (const message of client.buildTemplate(toRequest(order), { signal })) {
        const event = toEvent(message)
        if (event) yield event
      }
    },
    async deleteTemplate(templateId, signal) {
      await client.deleteTemplate({ templateId, deleteObjects: true }, { signal })
    },
    async listTemplates(signal) {
      const { templateIds: ids, durableIds } = await client.listTemplates({}, { signal })
      return { ids, durableIds }
    },
    async measureTemplates(ids, signal) {
      const { sizeBytes } = await client.measureTemplates({ templateIds: [...ids] }, { signal })
      return Number(sizeBytes)
    },
    async hasFiles({ teamId, hash }, signal) {
      return (await client.findBuildFiles({ ownerId: teamId, hash }, { signal })).present
    },
    async putFiles(files, archive, signal) {
      await client.putBuildFiles(toParts(files, archive), { signal }).catch((error: unknown) => {
        throw toFilesFault(error)
      })
    },
  }
}

function toRequest({ nodeTemplateId, parent, teamId, resources, recipe }: BuildOrder) {
  const { steps, force, startCommand, readyCommand } = recipe
  return {
    templateId: nodeTemplateId,
    ...('image' in parent
      ? { image: { reference: parent.image, ...parent.login } }
      : { parentId: parent.nodeTemplateId }),
    ownerId: teamId,
    ...resources,
    steps: steps.map(({ args, ...step }) => ({ ...step, args: [...args] })),
    force,
    ...(startCommand !== undefined && { startCommand }),
    ...(readyCommand !== undefined && { readyCommand }),
  }
}

/** Returns undefined for events that this version does not know. */
function toEvent({ event }: BuildTemplateResponse): BuildEvent | undefined {
  switch (event.case) {
    case 'log': {
      const { atMs, level, step, message } = event.value
      const entry = { at: new Date(Number(atMs)), level: levelNames[level], step, message }
      return { type: 'log', entry }
    }
    case 'started':
      return { type: 'started' }
    case 'done':
      return { type: 'done' }
    case 'failed': {
      const { step, message } = event.value
      return { type: 'failed', failure: { message, step: step === '' ? undefined : step } }
    }
    default:
      return undefined
  }
}

/** Chunk size: protocol messages are limited. The next chunk is read when the node asks for it. */
const pieceBytes = 256 * 1024

async function* toParts({ teamId, hash }: BuildFiles, archive: AsyncIterable<Uint8Array>) {
  yield { part: { case: 'files' as const, value: { ownerId: teamId, hash } } }
  for await (const chunk of archive) {
    for (let start = 0; start < chunk.length; start += pieceBytes) {
      const value = new Uint8Array(chunk.subarray(start, start + pieceBytes))
      yield { part: { case: 'piece' as const, value } }
    }
  }
}
