import type { Kysely, Transaction } from 'kysely'
import { failures } from '../../domain/builds/build.ts'
import type { LostBuild, LostFiles, NodeFileStore } from '../../domain/node-files.ts'
import { batches } from '../batches.ts'
import type { Schema } from '../schema.ts'
import { toFailed } from './build-rows.ts'

export function sqlNodeFileStore(db: Kysely<Schema>): NodeFileStore {
  return {
    listLost: (nodeId, limit) => listLost(db, nodeId, limit),
    failLost: (nodeId, buildIds, now) =>
      db.transaction().execute((transaction) => failLost(transaction, nodeId, buildIds, now)),
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

function selectLost(db: Kysely<Schema>, nodeId: string) {
  return db
    .selectFrom('template_builds')
    .where('template_builds.node_id', '=', nodeId)
    .where('status', '=', 'ready')
    .where('node_template_id', 'is not', null)
    .where('is_durable', '=', 0)
}

async function listLost(db: Kysely<Schema>, nodeId: string, limit: number): Promise<LostBuild[]> {
  const rows = await selectLost(db, nodeId)
    .leftJoin('snapshots', 'snapshots.build_id', 'template_builds.id')
    .select(['template_builds.id', 'node_template_id', 'snapshots.id as snapshot_id'])
    .$narrowType<{ node_template_id: string }>()
    .limit(limit)
    .execute()
  return rows.map((row) => ({
    buildId: row.id,
    nodeTemplateId: row.node_template_id,
    snapshotId: row.snapshot_id ?? undefined,
  }))
}

async function failLost(
  db: Transaction<Schema>,
  nodeId: string,
  buildIds: readonly string[],
  now: Date,
): Promise<LostFiles> {
  let [snapshots, total] = [0, 0]
  for (const ids of batches(buildIds)) {
    const found = await selectLost(db, nodeId)
      .select('id')
      .where('id', 'in', ids)
      // Sweeps of other nodes note at the same time what the object store has.
      .forUpdate()
      .execute()
    if (found.length === 0) continue
    const batch = found.map(({ id }) => id)
    total += batch.length
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
  return { snapshots, templates: total - snapshots }
}
