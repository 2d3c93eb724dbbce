import type { Generated } from 'kysely'

/** The rows of the store. Times are milliseconds since 1970, flags are 0 or 1: the same in every database. */
export interface Schema {
  settings: { name: string; value: string }
  teams: TeamRow
  users: UserRow
  nodes: { id: string; status: string; status_changed_at: number }
  api_keys: ApiKeyRow
  memberships: { user_id: string; team_id: string; created_at: number }
  access_tokens: AccessTokenRow
  templates: TemplateRow
  template_builds: TemplateBuildRow
  build_logs: BuildLogRow
  template_names: TemplateNameRow
  template_tags: TemplateTagRow
  snapshots: SnapshotRow
  secrets: SecretRow
  sandboxes: SandboxRow
  sandbox_metadata: { sandbox_id: string; key: string; value: string }
  leases: { process_id: string; node: string; expires_at: number }
  team_metrics: { team_id: string; at: number; concurrent: number; started: number }
  sandbox_metrics: SandboxMetricRow
}

export interface TeamRow {
  id: string
  name: string
  slug: string
  created_at: number
  /** JSON of the limits that differ from the configured ones. */
  limits: string | null
  /** JSON; null while it may use the platform. */
  block: string | null
}

export interface UserRow {
  id: string
  email: string | null
  default_team_id: string
  created_at: number
}

export interface AccessTokenRow {
  id: string
  user_id: string
  name: string
  hash: string
  /** JSON. */
  mask: string
  created_at: number
}

export interface ApiKeyRow {
  id: string
  team_id: string
  name: string
  hash: string
  /** JSON. */
  mask: string
  created_by: string | null
  created_at: number
  last_used_at: number | null
}

export interface TemplateRow {
  id: string
  /** Null: it belongs to the installation. */
  team_id: string | null
  public: number
  is_snapshot: Generated<number>
  created_by: string | null
  created_at: number
  updated_at: number
  spawn_count: number
  last_spawned_at: number | null
}

export interface TemplateBuildRow {
  id: string
  template_id: string
  status: string
  /** What nodes know its files by; null while there are none. */
  node_template_id: string | null
  cpu_count: number
  memory_mb: number
  disk_size_mb: number
  /** Null: that of the node. */
  envd_version: string | null
  created_at: number
  updated_at: number
  finished_at: number | null
  /** The process that is at it, also while it stops a build that has failed already. */
  holder: Generated<string | null>
  /** Why it failed, and at which step. */
  failure: Generated<string | null>
  failed_step: Generated<string | null>
}

export interface BuildLogRow {
  build_id: string
  /** Counted from zero. */
  position: number
  at: number
  /** The more severe, the higher. */
  level: number
  step: string
  message: string
}

export interface TemplateNameRow {
  /** Empty: the name belongs to the whole installation. */
  namespace: string
  alias: string
  template_id: string
  created_at: number
}

/** A tag stays with the builds it was given to before: that which has it is the newest that is ready. */
export interface TemplateTagRow {
  template_id: string
  tag: string
  build_id: string
  created_at: number
}

export interface SnapshotRow {
  /** What the node knows it by. */
  id: string
  team_id: string
  sandbox_id: string
  holder: string | null
  /** Null while it is nobody's build, or no longer. */
  build_id: string | null
  /** Null: it was made before this was kept. */
  size_bytes: number | null
  created_at: number
}

export interface SandboxRow {
  id: string
  team_id: string
  template_id: string
  build_id: string
  alias: string | null
  state: string
  cpu_count: number
  memory_mb: number
  disk_size_mb: number
  has_metadata: number
  secure: number
  allow_internet_access: number | null
  network: string | null
  created_at: number
  holder: string | null
  network_holder: string | null
  envd_version: string | null
  started_at: number | null
  end_at: number | null
  end_reason: string | null
  ended_at: number | null
  auto_pause: number
  auto_pause_memory: number
  auto_resume: number
  /** Null: it was created before this was kept. */
  timeout_seconds: number | null
  /** What a paused one comes back with. */
  kept: string | null
  /** Null: it runs, or nobody has measured it. */
  kept_bytes: number | null
}

export interface SecretRow {
  id: string
  team_id: string
  name: string
  version: number
  value: string
  /** JSON. */
  metadata: string
  created_at: number
  updated_at: number
}

export interface SandboxMetricRow {
  sandbox_id: string
  /** Unix seconds. */
  at: number
  cpu_count: number
  cpu_used_percent: number
  memory_used_bytes: number
  memory_cache_bytes: number
  memory_total_bytes: number
  disk_used_bytes: number
  disk_total_bytes: number
}
