import type { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { ServiceImpl } from '@connectrpc/connect'
import type { ObjectAccess } from '../app/objects/object-access.ts'
import type { WarmPools } from '../app/pools/warm-pools.ts'
import { checkId } from '../domain/sandboxes/cell.ts'
import type { SnapshotStore } from '../domain/sandboxes/snapshot.ts'

export function snapshotMethods(
  snapshots: SnapshotStore,
  objects: ObjectAccess,
  pools: Pick<WarmPools, 'removeSnapshot'>,
): Pick<ServiceImpl<typeof NodeService>, 'deleteSnapshot' | 'listSnapshots'> {
  return {
    async deleteSnapshot({ snapshotId, deleteObjects }) {
      checkId(snapshotId)
      // Temporary ones, as of forks, are not uploaded.
      if (deleteObjects && !snapshots.isTemporary(snapshotId)) {
        await objects.deleteObjects('snapshots', snapshotId)
      }
      await pools.removeSnapshot(snapshotId)
      await snapshots.remove(snapshotId)
      return {}
    },

    async listSnapshots() {
      const present = (await snapshots.list()).map(({ snapshotId }) => snapshotId)
      // Evicted ones stay listed: a caller that has not noted their upload yet must learn about it.
      const snapshotIds = [...new Set([...present, ...objects.evictedSnapshots()])]
      return { snapshotIds, durableIds: objects.durableOf('snapshots', snapshotIds) }
    },
  }
}
