import type { Kysely, Transaction } from 'kysely'
import { failures } from '../../domain/builds/build.ts'
import type { LostFiles, NodeFileStore } from '../../domain/node-files.ts'
import { batches } from '../batches.ts'
import type { Schema } from '../schema.ts'
import { toFailed } from './build-rows.ts'

export function sqlNodeFileStore(db: Kysely<Schema>): NodeFileStore {
  return {
    failLost: (nodeId, limit, now) =>
      db.transaction().execute((transaction) => failLost(transaction, nodeId, limit, now)),
    async handOver(nodeId, toNodeId, what) {
      const to = { node_id: toNodeId }
      const snapshots = db.updateTable('snapshots').set(to).where('node_id', '=', nodeId)
      if (what === 'unpublished') {
        await snapshots.where('build_id', 'is', null).execute()
        return
      }
      await snapshots.execute()
      await db.updateTable('template_builds').set(to).where('node_id', '=', nodeId).execute()
    },
  }
}

async function failLost(
  db: Transaction<Schema>,
  nodeId: string,
  limit: number,
  now: Date,
): Promise<LostFiles> {
  const found = await db
    .selectFrom('template_builds')
    .select('id')
    .where('node_id', '=', nodeId)
    .where('status', '=', 'ready')
    .where('node_template_id', 'is not', null)
    .where('is_durable', '=', 0)
    .limit(limit)
    // Sweeps of other nodes note at the same time what the object store has.
    .forUpdate()
    .execute()
  let snapshots = 0
  for (const batch of batches(found.map(({ id }) => id))) {
    const { numDeletedRows } = await db
      .deleteFrom('snapshots')
      .where('build_id', 'in', batch)
      .executeTakeFirst()
    snapshots += Number(numDeletedRows)
    await db
      .updateTable('template_builds')
      .set({ ...toFailed(failures.nodeGone, now), node_template_id: null })
      .where('id', 'in', batch)
      .execute()
  }
  return { snapshots, templates: found.length - snapshots }
}
