import type { Kysely } from 'kysely'
import type { LineageStore, Relative } from '../../domain/sandboxes/lineage.ts'
import { batches } from '../batches.ts'
import type { SandboxRow, Schema } from '../schema.ts'
import { toParent, toState } from './sandbox-row.ts'

const columns = [
  'id',
  'team_id',
  'template_id',
  'build_id',
  'alias',
  'state',
  'parent_id',
  'parent_kind',
  'created_at',
  'ended_at',
  'end_reason',
] as const

export function sqlLineageStore(db: Kysely<Schema>): LineageStore {
  const ofTeam = (teamId: string) =>
    db.selectFrom('sandboxes').select(columns).where('team_id', '=', teamId)
  return {
    async find(teamId, id) {
      const row = await ofTeam(teamId).where('id', '=', id).executeTakeFirst()
      return row && toRelative(row)
    },
    async childrenOf(teamId, ids, limit) {
      const found: Relative[] = []
      for (const batch of batches(ids)) {
        const rows = await ofTeam(teamId)
          .where('parent_id', 'in', batch)
          .orderBy('created_at')
          .orderBy('id')
          .limit(limit - found.length)
          .execute()
        found.push(...rows.map(toRelative))
        if (found.length >= limit) break
      }
      return found
    },
  }
}

function toRelative(row: Pick<SandboxRow, (typeof columns)[number]>): Relative {
  return {
    id: row.id,
    teamId: row.team_id,
    templateId: row.template_id,
    buildId: row.build_id,
    alias: row.alias ?? undefined,
    state: toState(row.state),
    parent: toParent(row),
    createdAt: new Date(row.created_at),
    endedAt: row.ended_at === null ? undefined : new Date(row.ended_at),
    endReason: row.end_reason ?? undefined,
  }
}
