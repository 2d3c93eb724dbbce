import type { KeyStore } from '../domain/key.ts'
import type { SandboxStore } from '../domain/sandbox-store.ts'
import type { SettingStore, TeamStore } from '../domain/team.ts'
import type { TemplateStore } from '../domain/template.ts'
import { sqlKeyStore } from './keys.ts'
import { migrate } from './migrate.ts'
import { migrations } from './migrations.ts'
import { sqlSandboxStore } from './sandboxes.ts'
import { openSqlite } from './sqlite.ts'
import { sqlSettingStore, sqlTeamStore } from './teams.ts'
import { sqlTemplateStore } from './templates.ts'

export interface Stores {
  readonly sandboxes: SandboxStore
  readonly templates: TemplateStore
  readonly keys: KeyStore
  readonly teams: TeamStore
  readonly settings: SettingStore
  close(): Promise<void>
}

/** Opens the store at this path, made or brought up to date as needed. */
export async function openStores(path: string): Promise<Stores> {
  const db = openSqlite(path)
  try {
    await migrate(db, migrations)
  } catch (error) {
    await db.destroy()
    throw error
  }
  return {
    sandboxes: sqlSandboxStore(db),
    templates: sqlTemplateStore(db),
    keys: sqlKeyStore(db),
    teams: sqlTeamStore(db),
    settings: sqlSettingStore(db),
    close: () => db.destroy(),
  }
}
