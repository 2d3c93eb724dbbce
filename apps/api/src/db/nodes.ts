import type { Kysely, Transaction } from 'kysely'
import { nodeStatuses, toWanted } from '../domain/node-record.ts'
import type { NodeRegistration, NodeStore, WantedStatus } from '../domain/node-record.ts'
import type { Schema } from './schema.ts'

type Db = Kysely<Schema>

export function sqlNodeStore(db: Db): NodeStore {
  return {
    async find(nodeId) {
      const query = db.selectFrom('nodes').selectAll().where('id', '=', nodeId)
      const row = await query.executeTakeFirst()
      return (
        row && {
          status: fromText(row.status),
          since: new Date(row.status_changed_at),
          movesSandboxes: row.moves_sandboxes === 1,
        }
      )
    },
    async set(id, { status, movesSandboxes }, now) {
      const current = {
        ...{ status, status_changed_at: now.getTime() },
        moves_sandboxes: Number(movesSandboxes),
      }
      await db
        .insertInto('nodes')
        .values({ id, ...current })
        .onConflict((conflict) => conflict.column('id').doUpdateSet(current))
        .execute()
    },
    async listMoving() {
      const query = db.selectFrom('nodes').select('id').where('moves_sandboxes', '=', 1)
      return (await query.orderBy('id').execute()).map(({ id }) => id)
    },
    async forgetFailedMoves(nodeId) {
      const none = { move_generation: null, move_end_at: null, move_problem: null }
      await db
        .updateTable('sandboxes')
        .set({ ...none, move_retry_at: null })
        .where('node_id', '=', nodeId)
        .where('state', '=', 'running')
        .where('move_generation', 'is not', null)
        .execute()
    },
    async listStatuses() {
      const rows = await db.selectFrom('nodes').select(['id', 'status']).execute()
      return rows.map(({ id, status }) => ({ id, status: fromText(status) }))
    },
    async register(node, now) {
      const known = await findEpoch(db, node.id)
      // Fast path without a transaction: reconcilers register the node in every pass.
      if (known && isSameEpoch(known, node)) return 'registered'
      return db.transaction().execute((transaction) => register(transaction, node, now))
    },
    claimRecords: (nodeId) =>
      db.transaction().execute((transaction) => claimRecords(transaction, nodeId)),
  }
}

function fromText(text: string): WantedStatus {
  const status = nodeStatuses.find((known) => known === text)
  if (status) return toWanted(status)
  throw new Error(
    `The store has a node with the unknown status ${text}. Start the release of Atoll that wrote it`,
  )
}

function findEpoch(db: Db, nodeId: string) {
  return db
    .selectFrom('nodes')
    .select(['epoch', 'instance_id'])
    .where('id', '=', nodeId)
    .executeTakeFirst()
}

interface KnownEpoch {
  readonly epoch: number | null
  readonly instance_id: string | null
}

function isSameEpoch({ epoch, instance_id }: KnownEpoch, node: NodeRegistration): boolean {
  return epoch === node.epoch && instance_id === node.instanceId
}

async function register(
  db: Transaction<Schema>,
  node: NodeRegistration,
  now: Date,
): Promise<'registered' | 'superseded'> {
  const { id, epoch, instanceId } = node
  const current = { epoch, instance_id: instanceId, seen_at: now.getTime() }
  // Insert first: the conflict locks the row, so that two agents with the same data cannot both register.
  const { numInsertedOrUpdatedRows: inserted = 0n } = await db
    .insertInto('nodes')
    .values({ id, ...(await firstStatus(db, now)), ...current })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .executeTakeFirst()
  if (inserted > 0n) return 'registered'
  const { numUpdatedRows: updated } = await db
    .updateTable('nodes')
    .set(current)
    .where('id', '=', id)
    .where((where) => where.or([where('epoch', 'is', null), where('epoch', '<', epoch)]))
    .executeTakeFirst()
  if (updated > 0n) return 'registered'
  const known = await findEpoch(db, id)
  return known && isSameEpoch(known, node) ? 'registered' : 'superseded'
}

/** Old Atoll versions had one node, under the name of its host: the first registered node takes over its status. */
async function firstStatus(db: Transaction<Schema>, now: Date) {
  const rows = await db.selectFrom('nodes').selectAll().limit(2).execute()
  const [old, ...others] = rows
  const isFirst = old?.epoch === null && others.length === 0
  return isFirst
    ? { status: old.status, status_changed_at: old.status_changed_at }
    : { status: 'ready', status_changed_at: now.getTime() }
}

async function claimRecords(db: Transaction<Schema>, nodeId: string): Promise<number> {
  const other = await db
    .selectFrom('nodes')
    .select('id')
    .where('epoch', 'is not', null)
    .where('id', '!=', nodeId)
    .executeTakeFirst()
  if (!other) {
    for (const table of ['sandboxes', 'snapshots'] as const) {
      await db.updateTable(table).set({ node_id: nodeId }).where('node_id', 'is', null).execute()
    }
    await claimBuilds(db, nodeId)
  }
  const { total } = await db
    .selectFrom('sandboxes')
    .select((select) => select.fn.countAll<number>().as('total'))
    .where('node_id', 'is', null)
    .where('state', '!=', 'ended')
    .executeTakeFirstOrThrow()
  return total
}

/** Templates of the installation have no team: every node has their files. */
async function claimBuilds(db: Transaction<Schema>, nodeId: string): Promise<void> {
  await db
    .updateTable('template_builds')
    .set({ node_id: nodeId })
    .where('node_id', 'is', null)
    .where('node_template_id', 'is not', null)
    .where('template_id', 'in', (query) =>
      query.selectFrom('templates').select('id').where('team_id', 'is not', null),
    )
    .execute()
}
