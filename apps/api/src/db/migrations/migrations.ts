import type { Kysely } from 'kysely'
import { addMemberships, addOperation, addTeamBlocks } from './access-tables.ts'
import { addBuilds } from './build-tables.ts'
import { addKillRequests } from './kill-requests.ts'
import { addKeptBytes } from '../snapshots/kept-bytes.ts'
import { addDurability, addKeptTimes, addPauseIds, addStoredGenerations } from './durability.ts'
import { addEdgeCalls, addFleet, addForgotten, addStarting } from './fleet-tables.ts'
import { addIssuedFiles } from './issued-files.ts'
import { addLeases, addUnreached } from './lease-tables.ts'
import { addLineage } from './lineage.ts'
import { addLifecycle, addPauses } from './lifecycle-columns.ts'
import { addMetrics } from './metric-tables.ts'
import type { Additions, Migration } from './migrate.ts'
import { addMoveIndex, addMoveRetries, addMoves } from './moves.ts'
import { addNetwork, addNetworkHolder } from './network-columns.ts'
import { addNodeOwnership } from './node-ownership.ts'
import { addRateWindows } from './rate-tables.ts'
import type { Schema } from '../schema.ts'
import { addSecrets } from '../secrets.ts'
import { addSlugs, addSnapshots } from './snapshot-tables.ts'
import { splitTemplates } from './template-tables.ts'

export const migrations: readonly Migration[] = [
  createTables,
  splitTemplates,
  addMemberships,
  addMetrics,
  addOperation,
  addLeases,
  addLifecycle,
  addTeamBlocks,
  addPauses,
  addNetwork,
  addSlugs,
  addSnapshots,
  addNetworkHolder,
  addKeptBytes,
  addBuilds,
  addSecrets,
]

export const additions: Additions = {
  ...{ addNodeOwnership, addLineage, addFleet, addEdgeCalls },
  ...{ addDurability, addMoves, addStarting, addPauseIds, addStoredGenerations },
  ...{ addIssuedFiles, addKeptTimes, addRateWindows, addUnreached, addMoveRetries, addMoveIndex },
  ...{ addKillRequests, addForgotten },
}

async function createTables({ schema }: Kysely<Schema>): Promise<void> {
  await createTeams(schema)
  await createSandboxes(schema)
}

type SchemaBuilder = Kysely<Schema>['schema']

async function createTeams(schema: SchemaBuilder): Promise<void> {
  await schema
    .createTable('settings')
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('value', 'text', (column) => column.notNull())
    .execute()
  await schema
    .createTable('teams')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .execute()
  await schema
    .createTable('users')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('email', 'text')
    .addColumn('default_team_id', 'text', (column) => column.notNull().references('teams.id'))
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .execute()
  await schema
    .createTable('api_keys')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('team_id', 'text', (column) => column.notNull().references('teams.id'))
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('hash', 'text', (column) => column.notNull().unique())
    .addColumn('mask', 'text', (column) => column.notNull())
    .addColumn('created_by', 'text', (column) => column.references('users.id'))
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('last_used_at', 'bigint')
    .execute()
  await schema.createIndex('api_keys_team').on('api_keys').column('team_id').execute()
  await schema
    .createTable('access_tokens')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('user_id', 'text', (column) => column.notNull().references('users.id'))
    .addColumn('hash', 'text', (column) => column.notNull().unique())
    .addColumn('mask', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .execute()
}

async function createSandboxes(schema: SchemaBuilder): Promise<void> {
  await schema
    .createTable('templates')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('build_id', 'text', (column) => column.notNull())
    .addColumn('alias', 'text', (column) => column.unique())
    .addColumn('public', 'integer', (column) => column.notNull())
    .addColumn('node_template_id', 'text', (column) => column.notNull())
    .addColumn('cpu_count', 'integer', (column) => column.notNull())
    .addColumn('memory_mb', 'integer', (column) => column.notNull())
    .addColumn('disk_size_mb', 'integer', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .execute()
  await schema
    .createTable('sandboxes')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('team_id', 'text', (column) => column.notNull().references('teams.id'))
    .addColumn('template_id', 'text', (column) => column.notNull())
    .addColumn('build_id', 'text', (column) => column.notNull())
    .addColumn('alias', 'text')
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('cpu_count', 'integer', (column) => column.notNull())
    .addColumn('memory_mb', 'integer', (column) => column.notNull())
    .addColumn('disk_size_mb', 'integer', (column) => column.notNull())
    .addColumn('has_metadata', 'integer', (column) => column.notNull())
    .addColumn('secure', 'integer', (column) => column.notNull())
    .addColumn('allow_internet_access', 'integer')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('envd_version', 'text')
    .addColumn('started_at', 'bigint')
    .addColumn('end_at', 'bigint')
    .addColumn('end_reason', 'text')
    .addColumn('ended_at', 'bigint')
    .execute()
  await schema
    .createIndex('sandboxes_of_team')
    .on('sandboxes')
    .columns(['team_id', 'state', 'started_at', 'id'])
    .execute()
  await schema.createIndex('sandboxes_due').on('sandboxes').columns(['state', 'end_at']).execute()
  await schema
    .createIndex('sandboxes_ended')
    .on('sandboxes')
    .columns(['state', 'ended_at'])
    .execute()
  await schema
    .createTable('sandbox_metadata')
    .addColumn('sandbox_id', 'text', (column) =>
      column.notNull().references('sandboxes.id').onDelete('cascade'),
    )
    .addColumn('key', 'text', (column) => column.notNull())
    .addColumn('value', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('sandbox_metadata_key', ['sandbox_id', 'key'])
    .execute()
}
