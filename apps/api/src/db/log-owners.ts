import type { Kysely } from 'kysely'
import type { LogOwners, SandboxPlace } from '../domain/log.ts'
import { statesShownAs } from '../domain/sandboxes/sandbox.ts'
import { batches } from './batches.ts'
import type { Schema } from './schema.ts'

export function sqlLogOwners(db: Kysely<Schema>): LogOwners {
  return {
    async nodesOf(teamId, sandboxIds) {
      const places: SandboxPlace[] = []
      for (const ids of batches(sandboxIds)) {
        const rows = await db
          .selectFrom('sandboxes')
          .select(['id', 'node_id'])
          .where('id', 'in', ids)
          .where('team_id', '=', teamId)
          .execute()
        for (const { id, node_id } of rows) {
          if (node_id !== null) places.push({ sandboxId: id, nodeId: node_id })
        }
      }
      return places
    },
    async runningOf(teamId) {
      const rows = await db
        .selectFrom('sandboxes')
        .select(['id', 'node_id'])
        .where('team_id', '=', teamId)
        .where('state', 'in', statesShownAs('running'))
        .where('node_id', 'is not', null)
        .$narrowType<{ node_id: string }>()
        .execute()
      return rows.map(({ id, node_id }) => ({ sandboxId: id, nodeId: node_id }))
    },
    async teamsOf(sandboxIds) {
      const teams = new Map<string, string>()
      for (const ids of batches(sandboxIds)) {
        const rows = await db
          .selectFrom('sandboxes')
          .select(['id', 'team_id'])
          .where('id', 'in', ids)
          .execute()
        for (const { id, team_id } of rows) teams.set(id, team_id)
      }
      return teams
    },
  }
}
