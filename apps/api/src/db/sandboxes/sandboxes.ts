import type { KeyRing, SealingWrite } from '@atoll/kit/encryption/key-ring'
import type { Kysely, Transaction } from 'kysely'
import type { RunningSandbox, Sandbox } from '../../domain/sandboxes/sandbox.ts'
import { isListed, isRunning, placeStates } from '../../domain/sandboxes/sandbox.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import { batches } from '../batches.ts'
import { sumKept, sumKeptLocked } from '../snapshots/kept-bytes.ts'
import { countRows, listRows } from './sandbox-list.ts'
import { recordEvent } from './sandbox-events.ts'
import { sandboxQueries } from './sandbox-queries.ts'
import { fromRow, toRow } from './sandbox-row.ts'
import type { SandboxRow, Schema } from '../schema.ts'

type Db = Kysely<Schema>

export function sqlSandboxStore(db: Db, keyRing: KeyRing): SandboxStore {
  /** Runs a transaction that writes with the current key. */
  async function writing<T>(work: (writer: Writer) => Promise<T>): Promise<T> {
    using write = keyRing.beginWrite()
    return await db
      .transaction()
      .execute((transaction) => work({ db: transaction, keyRing, write }))
  }
  return {
    insert: (sandbox, limit) => writing((writer) => insert(writer, sandbox, limit)),
    find: (id) => find(db, keyRing, id),
    update: (id, change) => writing((writer) => update(writer, id, change)),
    updateCounted: (teamId, id, change) =>
      writing(async (writer) => {
        const places = await countPlaces(writer.db, teamId)
        return update(writer, id, (current) => change(current, places))
      }),
    updateWithDiskUsage: (id, change) =>
      writing(async (writer) => {
        const found = await find(writer.db, keyRing, id)
        if (!found) return undefined
        const kept = await sumKeptLocked(writer.db, found.teamId)
        return update(writer, id, (current) => change(current, kept))
      }),
    keptBytes: (teamId) => sumKept(db, teamId),
    async list(filter) {
      const rows = await listRows(db, filter)
      return (await withMetadata(db, keyRing, rows)).filter(isListed)
    },
    async listPage(filter, page) {
      const rows = await listRows(db, filter, page)
      const sandboxes = await withMetadata(db, keyRing, rows)
      return rows.flatMap(({ rank }, index) => {
        const sandbox = sandboxes[index]
        return sandbox && isListed(sandbox) ? [{ sandbox, rank }] : []
      })
    },
    countByState: (filter) => countRows(db, filter),
    ...sandboxQueries(db, keyRing),
    deleteEndedBefore: (time, limit) =>
      db.transaction().execute((transaction) => deleteEndedBefore(transaction, time, limit)),
  }
}

interface Writer {
  readonly db: Transaction<Schema>
  readonly keyRing: KeyRing
  readonly write: SealingWrite
}

async function insert(
  { db, write }: Writer,
  sandbox: Sandbox,
  limit: number | undefined,
): Promise<boolean> {
  if (limit !== undefined && (await countPlaces(db, sandbox.teamId)) >= limit) return false
  await db.insertInto('sandboxes').values(toRow(sandbox, write)).execute()
  const pairs = Object.entries(sandbox.metadata ?? {})
  const rows = pairs.map(([key, value]) => ({ sandbox_id: sandbox.id, key, value }))
  for (const batch of batches(rows)) await db.insertInto('sandbox_metadata').values(batch).execute()
  return true
}

async function update<After extends Sandbox>(
  { db, keyRing, write }: Writer,
  id: string,
  change: (current: Sandbox) => After,
): Promise<After | undefined> {
  const current = await find(db, keyRing, id, 'locked')
  if (!current) return undefined
  const changed = change(current)
  if (changed === current) return changed
  const { id: _, ...columns } = toRow(changed, write)
  await db.updateTable('sandboxes').set(columns).where('id', '=', id).execute()
  await recordEvent(db, current, changed)
  if (isStart(current, changed)) await countSpawn(db, changed)
  return changed
}

/** Locks the team row until the transaction commits, so that concurrent changes see each other in the count. */
async function countPlaces(db: Transaction<Schema>, teamId: string): Promise<number> {
  await db
    .selectFrom('teams')
    .select('id')
    .where('id', '=', teamId)
    .forNoKeyUpdate()
    .executeTakeFirst()
  const { total } = await db
    .selectFrom('sandboxes')
    .select((select) => select.fn.countAll<number>().as('total'))
    .where('team_id', '=', teamId)
    .where('state', 'in', placeStates)
    .executeTakeFirstOrThrow()
  return total
}

function isStart(before: Sandbox, after: Sandbox): after is RunningSandbox {
  return before.state === 'creating' && isRunning(after)
}

/** Runs in the transaction of the start, so that the count stays correct. */
async function countSpawn(db: Transaction<Schema>, sandbox: RunningSandbox): Promise<void> {
  await db
    .updateTable('templates')
    .set((set) => ({
      spawn_count: set('spawn_count', '+', 1),
      last_spawned_at: sandbox.startedAt.getTime(),
    }))
    .where('id', '=', sandbox.templateId)
    .execute()
}

async function find(
  db: Db,
  keyRing: KeyRing,
  id: string,
  how?: 'locked',
): Promise<Sandbox | undefined> {
  const query = db.selectFrom('sandboxes').selectAll().where('id', '=', id)
  const rows = await (how ? query.forUpdate() : query).execute()
  return (await withMetadata(db, keyRing, rows))[0]
}

async function deleteEndedBefore(db: Db, time: Date, limit: number): Promise<number> {
  const rows = await db
    .selectFrom('sandboxes')
    .select('id')
    .where('state', '=', 'ended')
    .where('ended_at', '<', time.getTime())
    .limit(limit)
    .forUpdate()
    .skipLocked() // locked by another process
    .execute()
  for (const ids of batches(rows.map(({ id }) => id))) {
    await db.deleteFrom('sandboxes').where('id', 'in', ids).execute()
  }
  return rows.length
}

async function withMetadata(
  db: Db,
  keyRing: KeyRing,
  rows: readonly SandboxRow[],
): Promise<Sandbox[]> {
  const found = new Map<string, [string, string][]>()
  const ids = rows.filter((row) => row.has_metadata === 1).map((row) => row.id)
  for (const batch of batches(ids)) {
    const pairs = await db
      .selectFrom('sandbox_metadata')
      .selectAll()
      .where('sandbox_id', 'in', batch)
      .execute()
    for (const { sandbox_id: id, key, value } of pairs) {
      found.set(id, [...(found.get(id) ?? []), [key, value]])
    }
  }
  return rows.map((row) => fromRow(row, Object.fromEntries(found.get(row.id) ?? []), keyRing))
}
