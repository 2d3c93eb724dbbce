import type { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { ServiceImpl } from '@connectrpc/connect'
import { checkId } from '../domain/sandboxes/cell.ts'
import type { SnapshotStore } from '../domain/sandboxes/snapshot.ts'

export function snapshotMethods(
  snapshots: SnapshotStore,
): Pick<ServiceImpl<typeof NodeService>, 'deleteSnapshot' | 'listSnapshots'> {
  return {
    async deleteSnapshot({ snapshotId }) {
      checkId(snapshotId)
      await snapshots.remove(snapshotId)
      return {}
    },

    async listSnapshots() {
      return { snapshotIds: (await snapshots.list()).map(({ snapshotId }) => snapshotId) }
    },
  }
}
