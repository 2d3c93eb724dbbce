import { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { createClient } from '@connectrpc/connect'
import type { Transport } from '@connectrpc/connect'
import type { CatalogueNode } from '../domain/catalogue.ts'
import { toInstallFault } from './node-faults.ts'

/** Client for the catalogue of the node. */
export function connectCatalogue(transport: Transport): CatalogueNode {
  const client = createClient(NodeService, transport)
  return {
    async list(signal) {
      const { templates } = await client.listCatalogue({}, { signal })
      return templates.map(({ templateId, ...template }) => ({
        ...template,
        nodeTemplateId: templateId,
      }))
    },
    async *install({ nodeTemplateId, resources }, signal) {
      const request = { templateId: nodeTemplateId, ...resources }
      try {
        for await (const { label, fraction } of client.installTemplate(request, { signal })) {
          yield { label, fraction }
        }
      } catch (error) {
        signal.throwIfAborted()
        throw toInstallFault(error)
      }
    },
  }
}
