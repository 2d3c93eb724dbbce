import { randomUUID } from 'node:crypto'
import type { Kysely, Transaction } from 'kysely'
import type { Publication, Snapshot, SnapshotStore } from '../../domain/snapshot.ts'
import { nameOf } from '../../domain/template.ts'
import type { TemplateName } from '../../domain/template.ts'
import { batches } from '../batches.ts'
import { issueFiles } from '../issued-files.ts'
import { sumKeptLocked } from './kept-bytes.ts'
import { findNamedTemplate, insertTemplate, nameTaken } from '../templates/named-template.ts'
import type { Schema, SnapshotRow } from '../schema.ts'
import { listSnapshots } from './snapshot-list.ts'
import { assignTag } from '../templates/template-tags.ts'

type Db = Kysely<Schema>

export function sqlSnapshotStore(db: Db): SnapshotStore {
  return {
    insert: (snapshot, check) =>
      db.transaction().execute(async (transaction) => {
        check?.(await sumKeptLocked(transaction, snapshot.teamId))
        await transaction.insertInto('snapshots').values(toRow(snapshot)).execute()
        await issueFiles(transaction, snapshot.id)
      }),
    async resize(id, sizeBytes) {
      await db
        .updateTable('snapshots')
        .set({ size_bytes: sizeBytes })
        .where('id', '=', id)
        .execute()
    },
    async checkName(name, teamId) {
      await findNamed(db, name, teamId)
    },
    publish: (id, publication, now) =>
      db.transaction().execute((transaction) => publish(transaction, id, publication, now)),
    list: (filter, page) => listSnapshots(db, filter, page),
    async listUnpublished() {
      const rows = await db
        .selectFrom('snapshots')
        .selectAll()
        .where('build_id', 'is', null)
        .execute()
      return rows.map(fromRow)
    },
    async known(ids) {
      const found = new Set<string>()
      for (const batch of batches(ids)) {
        const rows = await db
          .selectFrom('snapshots')
          .select('id')
          .where('id', 'in', batch)
          .execute()
        for (const { id } of rows) found.add(id)
      }
      return found
    },
    async markDurable(ids) {
      for (const batch of batches(ids)) await setDurable(db, batch, 1).execute()
    },
    async clearDurable(nodeId, ids) {
      for (const batch of batches(ids)) {
        await setDurable(db, batch, 0).where('node_id', '=', nodeId).execute()
      }
    },
    async delete(id) {
      await db.deleteFrom('snapshots').where('id', '=', id).execute()
    },
  }
}

function setDurable(db: Db, ids: readonly string[], isDurable: 0 | 1) {
  const published = db.selectFrom('snapshots').select('build_id').where('id', 'in', ids)
  return db
    .updateTable('template_builds')
    .set({ is_durable: isDurable })
    .where('id', 'in', published)
    .where('is_durable', '<>', isDurable)
}

function toRow(snapshot: Snapshot): SnapshotRow {
  return {
    id: snapshot.id,
    team_id: snapshot.teamId,
    sandbox_id: snapshot.sandboxId,
    holder: snapshot.holder ?? null,
    build_id: snapshot.buildId ?? null,
    created_at: snapshot.createdAt.getTime(),
    size_bytes: snapshot.sizeBytes ?? null,
    node_id: snapshot.nodeId === '' ? null : snapshot.nodeId,
  }
}

function fromRow(row: SnapshotRow): Snapshot {
  return {
    id: row.id,
    teamId: row.team_id,
    sandboxId: row.sandbox_id,
    holder: row.holder ?? undefined,
    buildId: row.build_id ?? undefined,
    createdAt: new Date(row.created_at),
    sizeBytes: row.size_bytes ?? undefined,
    nodeId: row.node_id ?? '',
  }
}

async function publish(
  db: Transaction<Schema>,
  id: string,
  publication: Publication,
  now: Date,
): Promise<{ templateId: string }> {
  const { team_id, node_id } = await db
    .selectFrom('snapshots')
    .select(['team_id', 'node_id'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  const { name, tag, nodeTemplateId, resources, envdVersion } = publication
  const created_at = now.getTime()
  const templateId = await ensureTemplate(db, { name, teamId: team_id }, now)
  const build_id = randomUUID()
  await db
    .insertInto('template_builds')
    .values({
      id: build_id,
      template_id: templateId,
      status: 'ready',
      node_template_id: nodeTemplateId,
      cpu_count: resources.cpuCount,
      memory_mb: resources.memoryMb,
      disk_size_mb: resources.diskSizeMb,
      envd_version: envdVersion ?? null,
      created_at,
      updated_at: created_at,
      finished_at: created_at,
      node_id,
    })
    .execute()
  await assignTag(db, { template_id: templateId, tag, build_id }, now)
  await db.updateTable('snapshots').set({ build_id, holder: null }).where('id', '=', id).execute()
  return { templateId }
}

interface Wanted {
  readonly name: TemplateName | undefined
  readonly teamId: string
}

/** Returns the template of this name, or a new one. */
async function ensureTemplate(
  db: Transaction<Schema>,
  { name, teamId }: Wanted,
  now: Date,
): Promise<string> {
  // Lock the team: serializes concurrent requests for the same new name.
  await db.selectFrom('teams').select('id').where('id', '=', teamId).forNoKeyUpdate().execute()
  const known = name && (await findNamed(db, name, teamId))
  if (known === undefined) return insertTemplate(db, { teamId, isSnapshot: true, name }, now)
  const changed = { updated_at: now.getTime() }
  await db.updateTable('templates').set(changed).where('id', '=', known).execute()
  return known
}

async function findNamed(db: Db, name: TemplateName, teamId: string): Promise<string | undefined> {
  const named = await findNamedTemplate(db, name)
  if (!named) return undefined
  if (named.is_snapshot === 1 && named.team_id === teamId) return named.id
  throw nameTaken(`The name ${nameOf(name)} belongs to a template that is no snapshot`)
}
