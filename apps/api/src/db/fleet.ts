import { sql } from 'kysely'
import type { Kysely, Selectable, Transaction } from 'kysely'
import type {
  FleetMember,
  FleetStore,
  JoinOutcome,
  MemberRole,
  NodeHeartbeat,
} from '../domain/fleet-member.ts'
import { batches } from './batches.ts'
import type { FleetMemberRow, Schema } from './schema.ts'

export function sqlFleetStore(db: Kysely<Schema>): FleetStore {
  return { ...memberQueries(db), ...nodeQueries(db), ...forgetQueries(db) }
}

function memberQueries(db: Kysely<Schema>): Omit<FleetStore, NodeQuery | ForgetQuery> {
  return {
    async insertToken({ hash, role, expiresAt }, now) {
      const times = { created_at: now.getTime(), expires_at: expiresAt.getTime() }
      await db
        .insertInto('join_tokens')
        .values({ hash, role, ...times })
        .onConflict((conflict) =>
          conflict
            .column('hash')
            .doUpdateSet({ role, expires_at: times.expires_at })
            .where('join_tokens.used_at', 'is', null),
        )
        .execute()
    },
    join: (request, now, removedBefore) =>
      db.transaction().execute((transaction) => join(transaction, request, { now, removedBefore })),
    async findMember(id) {
      const query = db.selectFrom('fleet_members').selectAll().where('id', '=', id)
      const row = await query.executeTakeFirst()
      return row && fromRow(row)
    },
    async listMembers(edgesSince) {
      const seenAt = sql<number>`coalesce(seen_at, joined_at)`
      const rows = await db
        .selectFrom('fleet_members')
        .selectAll()
        .where('removed_at', 'is', null)
        .where((is) => is.or([is('role', '!=', 'edge'), is(seenAt, '>=', edgesSince.getTime())]))
        .orderBy('joined_at')
        .orderBy('id')
        .execute()
      return rows.map(fromRow)
    },
    async noteEdge(id, now) {
      const change = db.updateTable('fleet_members').set({ seen_at: now.getTime() })
      await change.where('id', '=', id).where('role', '=', 'edge').execute()
    },
    async remove(id, now) {
      const { numUpdatedRows } = await db
        .updateTable('fleet_members')
        .set({ removed_at: now.getTime() })
        .where('id', '=', id)
        .where('removed_at', 'is', null)
        .executeTakeFirst()
      return numUpdatedRows > 0n
    },
    async listRemovedAfter(time) {
      const query = db.selectFrom('fleet_members').select('id')
      const rows = await query.where('removed_at', '>', time.getTime()).execute()
      return rows.map(({ id }) => id)
    },
  }
}

type NodeQuery = 'noteHeartbeats' | 'listNodes'

function nodeQueries(db: Kysely<Schema>): Pick<FleetStore, NodeQuery> {
  return {
    async noteHeartbeats(nodes, now) {
      const noted = new Set<string>()
      // Sorted, so that two apis lock the same rows in the same order: otherwise each would wait for the other.
      const sorted = nodes.toSorted((a, b) => (a.id < b.id ? -1 : 1))
      for (const batch of batches(sorted)) {
        const members = await listNodeMembers(
          db,
          batch.map(({ id }) => id),
        )
        const beating = batch.filter(({ id }) => members.has(id))
        if (beating.length > 0) await noteBatch(db, beating, now)
        for (const { id } of beating) noted.add(id)
      }
      return noted
    },
    async listNodes() {
      const rows = await db
        .selectFrom('nodes')
        .innerJoin('fleet_members', 'fleet_members.id', 'nodes.id')
        .select(['nodes.id', 'nodes.address', 'nodes.seen_at', 'nodes.is_starting'])
        .where('fleet_members.removed_at', 'is', null)
        .where('fleet_members.forgotten_at', 'is', null)
        .where('nodes.address', 'is not', null)
        .orderBy('nodes.id')
        .execute()
      return rows.flatMap(({ id, address, seen_at, is_starting }) =>
        address === null
          ? []
          : [{ id, address, seenAt: seen_at ?? undefined, isStarting: is_starting === 1 }],
      )
    },
  }
}

type ForgetQuery = 'forget' | 'listForgotten' | 'lastSeen'

function forgetQueries(db: Kysely<Schema>): Pick<FleetStore, ForgetQuery> {
  return {
    async forget(id, now) {
      const at = now.getTime()
      await db
        .updateTable('fleet_members')
        .set({
          removed_at: sql<number>`coalesce(removed_at, ${at})`,
          forgotten_at: sql<number>`coalesce(forgotten_at, ${at})`,
        })
        .where('id', '=', id)
        .where('role', '=', 'node')
        .execute()
    },
    async listForgotten(before) {
      const query = db.selectFrom('fleet_members').select('id')
      const rows = await query.where('forgotten_at', '<', before.getTime()).orderBy('id').execute()
      return rows.map(({ id }) => id)
    },
    async lastSeen(id) {
      const query = db.selectFrom('nodes').select(['seen_at', 'address']).where('id', '=', id)
      const row = await query.executeTakeFirst()
      const seenAt = row?.seen_at ?? undefined
      return {
        at: seenAt === undefined ? undefined : new Date(seenAt),
        address: row?.address ?? undefined,
      }
    },
  }
}

async function listNodeMembers(
  db: Kysely<Schema>,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom('fleet_members')
    .select('id')
    .where('id', 'in', ids)
    .where('role', '=', 'node')
    .where('removed_at', 'is', null)
    .where('forgotten_at', 'is', null)
    .execute()
  return new Set(rows.map(({ id }) => id))
}

async function noteBatch(
  db: Kysely<Schema>,
  nodes: readonly NodeHeartbeat[],
  now: Date,
): Promise<void> {
  const nowMs = now.getTime()
  const rows = nodes.map(({ id, address, isStarting }) => ({
    ...{ id, address, seen_at: nowMs, is_starting: Number(isStarting) },
    ...{ status: 'ready', status_changed_at: nowMs },
  }))
  await db
    .insertInto('nodes')
    .values(rows)
    .onConflict((conflict) =>
      conflict.column('id').doUpdateSet((given) => ({
        address: given.ref('excluded.address'),
        seen_at: given.ref('excluded.seen_at'),
        is_starting: given.ref('excluded.is_starting'),
      })),
    )
    .execute()
}

async function join(
  db: Transaction<Schema>,
  request: { readonly tokenHash: string; readonly role: MemberRole; readonly id: string },
  times: { readonly now: Date; readonly removedBefore: Date },
): Promise<JoinOutcome> {
  const { tokenHash, role, id } = request
  const nowMs = times.now.getTime()
  // The lock lets only one of two callers use the token.
  const token = await db
    .selectFrom('join_tokens')
    .selectAll()
    .where('hash', '=', tokenHash)
    .forUpdate()
    .executeTakeFirst()
  if (!token || token.used_at !== null || token.expires_at <= nowMs) return 'invalid_token'
  if (token.role !== role) return 'other_role'
  const known = await db
    .selectFrom('fleet_members')
    .selectAll()
    .where('id', '=', id)
    .executeTakeFirst()
  if (known && known.forgotten_at !== null) return 'forgotten'
  const isFree = known?.removed_at != null && known.removed_at < times.removedBefore.getTime()
  if (known && !isFree) return 'known_id'
  await db
    .updateTable('join_tokens')
    .set({ used_at: nowMs, member_id: id })
    .where('hash', '=', tokenHash)
    .execute()
  const member = { role, joined_at: nowMs, removed_at: null, seen_at: null }
  await db
    .insertInto('fleet_members')
    .values({ id, ...member })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(member))
    .execute()
  return 'joined'
}

function fromRow(row: Selectable<FleetMemberRow>): FleetMember {
  const { id, role, joined_at, removed_at, forgotten_at } = row
  return {
    id,
    role: role === 'edge' ? 'edge' : 'node',
    joinedAt: new Date(joined_at),
    removedAt: removed_at === null ? undefined : new Date(removed_at),
    forgottenAt: forgotten_at === null ? undefined : new Date(forgotten_at),
  }
}
