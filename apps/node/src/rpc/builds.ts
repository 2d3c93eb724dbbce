import { LogLevel } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type {
  BuildTemplateRequest,
  NodeService,
  PutBuildFilesRequest,
} from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { BuildTemplateResponseSchema } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Fault } from '@atoll/kit/fault'
import type { ServiceImpl } from '@connectrpc/connect'
import type { ObjectAccess } from '../app/objects/object-access.ts'
import type { Builds } from '../app/builds/builds.ts'
import type { BuildRequest } from '../domain/builds/build.ts'
import { checkId, checkShape, shapeOf } from '../domain/sandboxes/cell.ts'
import { createQueue } from './queue.ts'
import { BuildError } from '../domain/builds/build-error.ts'

type Methods = Pick<
  ServiceImpl<typeof NodeService>,
  | 'buildTemplate'
  | 'deleteTemplate'
  | 'listTemplates'
  | 'measureTemplates'
  | 'findBuildFiles'
  | 'putBuildFiles'
>

export interface BuildStores {
  readonly templates: { list(): { readonly templateId: string }[] }
  measure(templateIds: readonly string[]): number
  readonly archives: {
    has(ownerId: string, hash: string): Promise<boolean>
    put(ownerId: string, hash: string, pieces: AsyncIterable<Uint8Array>): Promise<void>
  }
}

export function buildMethods(
  builds: Builds,
  { templates, archives, measure }: BuildStores,
  objects: ObjectAccess,
): Methods {
  return {
    async *buildTemplate(message, { signal }) {
      const request = toRequest(message)
      const events = createQueue<Event>()
      const note = async (step: string, level: keyof typeof levels, text: string) =>
        events.put({
          event: {
            case: 'log',
            value: { atMs: BigInt(Date.now()), level: levels[level], step, message: text },
          },
        })
      // A client that stops listening cancels the build.
      const left = new AbortController()
      const until = AbortSignal.any([signal, left.signal])
      const building = builds
        .build(request, {
          note,
          signal: until,
          onStarted: () => events.put({ event: { case: 'started', value: {} } }),
        })
        .then(({ sizeBytes }) =>
          events.put({ event: { case: 'done', value: { sizeBytes: BigInt(sizeBytes) } } }),
        )
        .catch((error: unknown) => {
          if (!(error instanceof BuildError)) throw error
          const { step, message: text } = error
          return events.put({ event: { case: 'failed', value: { step, message: text } } })
        })
        .finally(events.end)
      building.catch(() => {}) // thrown below
      try {
        yield* events.read()
        await building
      } finally {
        left.abort()
        await building.catch(() => {})
      }
    },

    async deleteTemplate({ templateId, deleteObjects }) {
      checkId(templateId)
      if (deleteObjects) await objects.deleteObjects('templates', templateId)
      await builds.remove(templateId)
      return {}
    },

    listTemplates() {
      const templateIds = templates.list().map(({ templateId }) => templateId)
      return { templateIds, durableIds: objects.durableOf('templates', templateIds) }
    },

    measureTemplates: ({ templateIds }) => ({ sizeBytes: BigInt(measure(templateIds)) }),

    findBuildFiles: async ({ ownerId, hash }) => ({
      present: await archives.has(ownerId, hash),
    }),

    async putBuildFiles(parts) {
      const reader = parts[Symbol.asyncIterator]()
      const first = await reader.next()
      const head = first.done ? undefined : first.value.part
      if (head?.case !== 'files') {
        throw new Fault('invalid', 'bad_upload', 'The first message must name owner and hash')
      }
      await archives.put(head.value.ownerId, head.value.hash, pieces(reader))
      return {}
    },
  }
}

type Event = MessageInitShape<typeof BuildTemplateResponseSchema>

const levels = {
  debug: LogLevel.DEBUG,
  info: LogLevel.INFO,
  warn: LogLevel.WARN,
  error: LogLevel.ERROR,
} as const

function toRequest(message: BuildTemplateRequest): BuildRequest {
  const { parentId, image, ownerId, steps, force, startCommand, readyCommand } = message
  const shape = shapeOf(message)
  checkShape(shape)
  const parent = image ?? parentId
  return { shape, parent, ownerId, steps, force, startCommand, readyCommand }
}

async function* pieces(reader: AsyncIterator<PutBuildFilesRequest>): AsyncIterable<Uint8Array> {
  for (let next = await reader.next(); !next.done; next = await reader.next()) {
    const { part } = next.value
    if (part.case === 'piece') yield part.value
  }
}
