import type { KeyRing } from '@atoll/kit/encryption/key-ring'
import { sql } from 'kysely'
import type { Kysely } from 'kysely'
import { placeStates, sandboxStates, statesShownAs } from '../../domain/sandboxes/sandbox.ts'
import { isMoving } from '../../domain/sandboxes/sandbox-move.ts'
import type { OwnedSandbox, SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import type { SandboxRow, Schema } from '../schema.ts'
import { readNetwork, toContent, toMove, toState } from './sandbox-row.ts'

type Queries = Pick<
  SandboxStore,
  | 'countRunningByTeam'
  | 'listByState'
  | 'listOfNode'
  | 'listLostWith'
  | 'countPausedOf'
  | 'listMoving'
  | 'listNetworkChanges'
  | 'listWithSecrets'
  | 'listEndedWithObjects'
  | 'listExpired'
  | 'nextEnd'
>

/** Queries that return some columns of many sandboxes. */
export function sandboxQueries(db: Kysely<Schema>, keyRing: KeyRing): Queries {
  return {
    async countRunningByTeam() {
      const rows = await db
        .selectFrom('sandboxes')
        .select((select) => ['team_id', select.fn.countAll<number>().as('total')])
        .where('state', 'in', statesShownAs('running'))
        .groupBy('team_id')
        .execute()
      return new Map(rows.map(({ team_id, total }) => [team_id, total]))
    },
    async listByState(states) {
      const query = db.selectFrom('sandboxes').select(['id', 'state']).where('state', 'in', states)
      return (await query.execute()).map(({ id, state }) => ({ id, state: toState(state) }))
    },
    async listOfNode(nodeId, states) {
      const rows = await db
        .selectFrom('sandboxes')
        .select(['id', 'state', 'generation', 'end_at', 'kill_requested'])
        .select(['kept_end_at', 'kept_generation', 'kept_id', 'durable_generation'])
        .select(['move_generation', 'move_end_at', 'move_problem', 'move_retry_at'])
        .where('node_id', '=', nodeId)
        .where('state', 'in', states)
        .execute()
      return rows.map((row) => toOwned(nodeId, row))
    },
    async listMoving() {
      const rows = await selectMoving(db).execute()
      return rows.map(({ id, node_id: nodeId, ...row }) => ({
        ...{ id, nodeId: nodeId ?? '' },
        isDurable: row.durable_generation === row.kept_generation,
      }))
    },
    async listNetworkChanges() {
      const rows = await db
        .selectFrom('sandboxes')
        .select(['id', 'network_holder'])
        .where('state', 'in', statesShownAs('running', 'paused'))
        .where('network_holder', 'is not', null)
        .execute()
      return rows.map(({ id, network_holder: holder }) => ({ id, holder: holder ?? '' }))
    },
    async listWithSecrets(teamId) {
      const rows = await db
        .selectFrom('sandboxes')
        .select(['id', 'network'])
        .where('team_id', '=', teamId)
        .where('state', 'in', placeStates)
        .where('network', 'like', '%${e2b.secrets.%')
        .execute()
      return rows.map((row) => ({ id: row.id, network: readNetwork(row, keyRing) ?? {} }))
    },
    ...lossQueries(db),
    ...expiryQueries(db),
    ...endedQueries(db),
  }
}

/** States of sandboxes that can continue from the object store. */
const keptStates = ['paused', 'resuming'] as const
const liveStates = sandboxStates.filter((state) => state !== 'ended')

function lossQueries(db: Kysely<Schema>): Pick<Queries, 'listLostWith' | 'countPausedOf'> {
  return {
    async listLostWith(nodeId, limit) {
      // `coalesce`: a comparison with null is neither true nor false. No generation and no time is negative.
      const isDurable = sql<boolean>`coalesce(kept_generation, -1) = coalesce(durable_generation, -2)
        and coalesce(kept_end_at, -1) = coalesce(end_at, -2)`
      const rows = await db
        .selectFrom('sandboxes')
        .select(['id', 'state', 'end_at'])
        .select(['kept_end_at', 'kept_generation', 'kept_id', 'durable_generation'])
        .where('node_id', '=', nodeId)
        .where('state', 'in', liveStates)
        .where(({ not, and, eb }) => not(and([eb('state', 'in', keptStates), isDurable])))
        .limit(limit)
        .execute()
      return rows.map((row) => ({ id: row.id, state: toState(row.state), ...toContent(row) }))
    },
    async countPausedOf(nodeId) {
      const { total } = await db
        .selectFrom('sandboxes')
        .select((select) => select.fn.countAll<number>().as('total'))
        .where('node_id', '=', nodeId)
        .where('state', '=', 'paused')
        .executeTakeFirstOrThrow()
      return total
    },
  }
}

export function selectMoving(db: Kysely<Schema>) {
  return db
    .selectFrom('sandboxes')
    .select(['id', 'node_id', 'kept_generation', 'durable_generation'])
    .where('state', '=', 'paused')
    .where('move_end_at', 'is not', null)
    .whereRef('move_generation', '=', 'kept_generation')
    .whereRef('kept_end_at', '=', 'end_at')
}

function endedQueries(db: Kysely<Schema>): Pick<Queries, 'listEndedWithObjects'> {
  return {
    listEndedWithObjects: (limit) =>
      db
        .selectFrom('sandboxes')
        .select(['id', 'stored_generation as generation'])
        .where('state', '=', 'ended')
        .where('stored_generation', 'is not', null)
        .$narrowType<{ generation: number }>()
        .limit(limit)
        .execute(),
  }
}

type OwnedRow = Pick<
  SandboxRow,
  | ('id' | 'state' | 'generation' | 'end_at' | 'kill_requested')
  | ('kept_end_at' | 'kept_generation' | 'kept_id' | 'durable_generation')
  | ('move_generation' | 'move_end_at' | 'move_problem' | 'move_retry_at')
>

function toOwned(nodeId: string, row: OwnedRow): OwnedSandbox {
  const move = toMove(row)
  const known = {
    state: toState(row.state),
    generation: row.generation,
    ...toContent(row),
  }
  return {
    ...{ id: row.id, nodeId, isKillRequested: row.kill_requested === 1, ...known },
    isMoving: isMoving({ ...known, move }),
    move,
  }
}

function expiryQueries(db: Kysely<Schema>): Pick<Queries, 'listExpired' | 'nextEnd'> {
  const running = (nodeIds: readonly string[]) =>
    db
      .selectFrom('sandboxes')
      .where('state', '=', 'running')
      .where((where) =>
        // PostgreSQL refuses an empty list, and no node has an empty ID.
        where.or([where('auto_pause', '=', 0), where('node_id', 'in', [...nodeIds, ''])]),
      )
      .orderBy('end_at')
  return {
    async listExpired(now, limit, nodeIds) {
      const rows = await running(nodeIds)
        .select('id')
        .where('end_at', '<=', now.getTime())
        .limit(limit)
        .execute()
      return rows.map(({ id }) => id)
    },
    async nextEnd(nodeIds) {
      const row = await running(nodeIds).select('end_at').limit(1).executeTakeFirst()
      return typeof row?.end_at === 'number' ? new Date(row.end_at) : undefined
    },
  }
}
