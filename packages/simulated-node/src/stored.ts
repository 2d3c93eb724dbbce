import type { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Code, ConnectError } from '@connectrpc/connect'
import type { ServiceImpl } from '@connectrpc/connect'
import { reachObjects } from './objects.ts'
import { isStored } from './pauses.ts'
import type { NodeState } from './sandbox.ts'

const maxQuery = 200

/** Simulates questions about what the object store has, whichever node uploaded it. */
export function simulateStored({
  objects,
  failures,
}: Pick<NodeState, 'objects' | 'failures'>): Pick<ServiceImpl<typeof NodeService>, 'findStored'> {
  return {
    async findStored({ contents, snapshotIds, templateIds }) {
      await failures.apply('findStored')
      if (contents.length + snapshotIds.length + templateIds.length > maxQuery) {
        throw new ConnectError('too many', Code.InvalidArgument)
      }
      const { snapshots, templates } = reachObjects(objects)
      return {
        contents: contents.filter((content) => isStored(objects, content.sandboxId, content)),
        snapshotIds: snapshotIds.filter((id) => snapshots.has(id)),
        templateIds: templateIds.filter((id) => templates.has(id)),
      }
    },
  }
}
