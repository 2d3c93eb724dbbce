import type { KeyRing } from '@atoll/kit/encryption/key-ring'
import type { Kysely } from 'kysely'
import type { BuildLogStore } from '../domain/builds/build-log.ts'
import type { BuildStore } from '../domain/builds/build.ts'
import type { FleetStore } from '../domain/fleet-member.ts'
import type { RateStore } from '../domain/teams/rate.ts'
import type { IssuedFiles } from '../domain/issued-files.ts'
import type { KeyStore } from '../domain/teams/key.ts'
import type { LeaseStore } from '../domain/lease.ts'
import type { LogOwners } from '../domain/log.ts'
import type { TeamMetricStore, UsageStore } from '../domain/metrics.ts'
import type { LineageStore } from '../domain/sandboxes/lineage.ts'
import type { SandboxEventStore } from '../domain/sandboxes/sandbox-events.ts'
import type { SandboxStore } from '../domain/sandboxes/sandbox-store.ts'
import type { SecretStore } from '../domain/secret.ts'
import type { SnapshotStore } from '../domain/snapshot.ts'
import type { NodeFileStore } from '../domain/node-files.ts'
import type { NodeStore } from '../domain/node-record.ts'
import type { AccessTokenStore, SettingStore, TeamStore, UserStore } from '../domain/teams/team.ts'
import type { TemplateStore } from '../domain/template.ts'
import { sqlAccessTokenStore } from './teams/access-tokens.ts'
import { sqlBuildLogStore } from './builds/build-logs.ts'
import { sqlBuildStore } from './builds/builds.ts'
import { sqlNodeFileStore } from './builds/node-files.ts'
import type { Database } from './database.ts'
import { resealStore } from './encryption/reseal.ts'
import type { StoreReseal } from './encryption/reseal.ts'
import { sealedSettingStore } from './encryption/sealed-settings.ts'
import type { SealedSettingStore } from './encryption/sealed-settings.ts'
import { sqlFleetStore } from './fleet.ts'
import { sqlIssuedFiles } from './issued-files.ts'
import { sqlKeyStore } from './teams/keys.ts'
import { sqlRateStore } from './teams/rates.ts'
import { sqlLeaseStore } from './leases.ts'
import { sqlLogOwners } from './log-owners.ts'
import { migrate } from './migrations/migrate.ts'
import { additions, migrations } from './migrations/migrations.ts'
import { sqlNodeStore } from './nodes.ts'
import { openFault } from './postgres-errors.ts'
import type { OnQuery } from './query-record.ts'
import { isPostgresUrl, openPostgres } from './postgres.ts'
import type { Schema } from './schema.ts'
import { sqlUsageStore } from './metrics/sandbox-metrics.ts'
import { sqlLineageStore } from './sandboxes/lineage.ts'
import { sqlSandboxEventStore } from './sandboxes/sandbox-events.ts'
import { sqlSandboxStore } from './sandboxes/sandboxes.ts'
import { sqlSecretStore } from './secrets.ts'
import { sqlSnapshotStore } from './snapshots/snapshots.ts'
import { openSqlite } from './sqlite.ts'
import { sqlTeamMetricStore } from './metrics/team-metrics.ts'
import { sqlSettingStore, sqlTeamStore } from './teams/teams.ts'
import { sqlTemplateStore } from './templates/templates.ts'
import { sqlUserStore } from './teams/users.ts'

export interface Stores {
  readonly sandboxes: SandboxStore
  readonly templates: TemplateStore
  readonly builds: BuildStore
  readonly buildLogs: BuildLogStore
  readonly snapshots: SnapshotStore
  readonly issuedFiles: IssuedFiles
  readonly lineage: LineageStore
  readonly sandboxEvents: SandboxEventStore
  readonly keys: KeyStore
  readonly secrets: SecretStore
  readonly teams: TeamStore
  readonly rates: RateStore
  readonly users: UserStore
  readonly accessTokens: AccessTokenStore
  readonly settings: SettingStore
  readonly sealedSettings: SealedSettingStore
  readonly leases: LeaseStore
  readonly nodes: NodeStore
  readonly nodeFiles: NodeFileStore
  readonly fleet: FleetStore
  readonly teamMetrics: TeamMetricStore
  readonly usage: UsageStore
  readonly logOwners: LogOwners
  /** The same records, for work that no request waits for: requests do not queue behind its statements. */
  readonly background: BackgroundStores
  /** Runs `work` while no other process on this store is inside such a call. */
  exclusively<T>(work: () => Promise<T>): Promise<T>
  /** Keys of all private values in the store. */
  readonly keyRing: KeyRing
  /** Seals values again that are plain or have an older key. Leaves no copy of a plain value in the files of SQLite. */
  reseal(): Promise<StoreReseal>
  /** Writes a copy of the store to a new file. Absent for PostgreSQL. */
  copyTo?(path: string): Promise<void>
  close(): Promise<void>
}

export type BackgroundStores = Pick<
  Stores,
  'sandboxes' | 'builds' | 'snapshots' | 'issuedFiles' | 'leases' | 'nodes' | 'usage'
>

/** Opens the store, PostgreSQL by URL or SQLite by path. Creates or migrates the schema as needed. */
export async function openStores(
  location: string,
  keyRing: KeyRing,
  onQuery?: OnQuery,
): Promise<Stores> {
  const database = openDatabase(location, onQuery)
  const { db } = database
  try {
    await database.exclusively((unhurried) => migrate(unhurried, migrations, additions))
  } catch (error) {
    await database.close()
    throw isPostgresUrl(location) ? openFault(location, error) : error
  }
  const settings = sqlSettingStore(db)
  return {
    exclusively: (work) => database.exclusively(() => work()),
    ...(database.copyTo && { copyTo: database.copyTo }),
    sandboxes: sqlSandboxStore(db, keyRing),
    templates: sqlTemplateStore(db),
    builds: sqlBuildStore(db),
    buildLogs: sqlBuildLogStore(db),
    snapshots: sqlSnapshotStore(db),
    issuedFiles: sqlIssuedFiles(db),
    lineage: sqlLineageStore(db),
    sandboxEvents: sqlSandboxEventStore(db),
    keys: sqlKeyStore(db),
    secrets: sqlSecretStore(db, keyRing),
    teams: sqlTeamStore(db),
    rates: sqlRateStore(db),
    users: sqlUserStore(db),
    accessTokens: sqlAccessTokenStore(db),
    settings,
    sealedSettings: sealedSettingStore(settings, keyRing),
    leases: sqlLeaseStore(db),
    nodes: sqlNodeStore(db),
    nodeFiles: sqlNodeFileStore(db),
    fleet: sqlFleetStore(db),
    teamMetrics: sqlTeamMetricStore(db),
    usage: sqlUsageStore(db),
    logOwners: sqlLogOwners(db),
    background: backgroundStores(database.background, keyRing),
    keyRing,
    async reseal() {
      const done = await resealStore(db, keyRing)
      if (done.plain > 0) await database.scrub?.()
      return done
    },
    close: () => database.close(),
  }
}

function backgroundStores(db: Kysely<Schema>, keyRing: KeyRing): BackgroundStores {
  return {
    sandboxes: sqlSandboxStore(db, keyRing),
    builds: sqlBuildStore(db),
    snapshots: sqlSnapshotStore(db),
    issuedFiles: sqlIssuedFiles(db),
    leases: sqlLeaseStore(db),
    nodes: sqlNodeStore(db),
    usage: sqlUsageStore(db),
  }
}

export function openDatabase(location: string, onQuery?: OnQuery): Database {
  return isPostgresUrl(location)
    ? openPostgres(location, undefined, onQuery)
    : openSqlite(location, onQuery)
}
