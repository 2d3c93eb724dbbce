import type {
  InstallTemplateResponseSchema,
  NodeService,
} from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { ServiceImpl } from '@connectrpc/connect'
import type { Installs } from '../app/catalogue/installs.ts'
import { checkShape, shapeOf } from '../domain/sandboxes/cell.ts'
import { createQueue } from './queue.ts'

type Methods = Pick<ServiceImpl<typeof NodeService>, 'listCatalogue' | 'installTemplate'>

export function catalogueMethods(installs: Installs): Methods {
  return {
    listCatalogue: () => ({
      templates: installs.list().map(({ template, isInstalled }) => {
        const { templateId, name, alias, description, leastMemoryMb } = template
        return { templateId, name, alias, description, leastMemoryMb, isInstalled }
      }),
    }),

    async *installTemplate(request) {
      const shape = shapeOf(request)
      checkShape(shape)
      const events = createQueue<MessageInitShape<typeof InstallTemplateResponseSchema>>()
      const installing = installs
        .install(shape, (label, fraction) => void events.put({ label, fraction }))
        .finally(events.end)
      installing.catch(() => {}) // thrown below
      yield* events.read()
      await installing
    },
  }
}
