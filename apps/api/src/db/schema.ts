import type { Generated } from 'kysely'

/** Rows of the store. Times are milliseconds since 1970, flags are 0 or 1, in every database. */
export interface Schema {
  settings: { name: string; value: string }
  teams: TeamRow
  users: UserRow
  nodes: NodeRow
  api_keys: ApiKeyRow
  memberships: { user_id: string; team_id: string; created_at: number }
  access_tokens: AccessTokenRow
  templates: TemplateRow
  template_builds: TemplateBuildRow
  build_logs: BuildLogRow
  template_names: TemplateNameRow
  template_tags: TemplateTagRow
  snapshots: SnapshotRow
  /** `unused_since`: when the ID was found without a record; null while it has one. */
  issued_files: { id: string; unused_since: number | null }
  secrets: SecretRow
  sandboxes: SandboxRow
  sandbox_events: SandboxEventRow
  sandbox_metadata: { sandbox_id: string; key: string; value: string }
  fleet_members: FleetMemberRow
  join_tokens: JoinTokenRow
  leases: LeaseRow
  rate_windows: RateWindowRow
  team_metrics: { team_id: string; at: number; concurrent: number; started: number }
  sandbox_metrics: SandboxMetricRow
}

export interface LeaseRow {
  process_id: string
  node: string
  expires_at: number
  /** JSON of the IDs of nodes that the process does not reach; null if it reaches all. */
  unreached: Generated<string | null>
}

/** Current window of a rate limit. */
export interface RateWindowRow {
  team_id: string
  operation: string
  /** Requests of all apis in the window. */
  requests: number
  seconds: number
  ends_at: number
}

export interface FleetMemberRow {
  id: string
  role: string
  joined_at: number
  removed_at: number | null
  /** Last call of an edge, within some minutes. Nodes have their own. */
  seen_at: number | null
  /** When an operator said that the node never comes back. */
  forgotten_at: Generated<number | null>
}

export interface JoinTokenRow {
  hash: string
  role: string
  created_at: number
  expires_at: number
  used_at: Generated<number | null>
  member_id: Generated<string | null>
}

export interface NodeRow {
  id: string
  /** Status that an operator wants. */
  status: string
  status_changed_at: number
  /** Null, like all later columns, if the row is of an old Atoll version. */
  epoch: Generated<number | null>
  /** Agent that began the epoch. */
  instance_id: Generated<string | null>
  /** `host:port` of the node; null if it is in the process of an API. */
  address: Generated<string | null>
  /** JSON, like the usage. */
  facts: Generated<string | null>
  usage: Generated<string | null>
  seen_at: Generated<number | null>
  /** Whether running sandboxes are moved to other nodes. */
  moves_sandboxes: Generated<number>
  /** Whether the last heartbeat came from an agent that does not answer calls yet. */
  is_starting: Generated<number>
}

export interface TeamRow {
  id: string
  name: string
  slug: string
  created_at: number
  /** JSON of the limits that differ from the configured ones. */
  limits: string | null
  /** JSON; null if the team is not blocked. */
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
  /** Null if the template belongs to the installation. */
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
  /** ID of the template files on nodes; null while there are none. */
  node_template_id: string | null
  cpu_count: number
  memory_mb: number
  disk_size_mb: number
  /** Null means the envd version of the node. */
  envd_version: string | null
  created_at: number
  updated_at: number
  finished_at: number | null
  /** Process that runs the build, or stops it after it has failed. */
  holder: Generated<string | null>
  /** Error message; `failed_step` is the step at fault. */
  failure: Generated<string | null>
  failed_step: Generated<string | null>
  /** Node that has the files; null if every node has them. */
  node_id: Generated<string | null>
  /** Whether the object store has the files. */
  is_durable: Generated<number>
}

export interface BuildLogRow {
  build_id: string
  /** Starts at 0. */
  position: number
  at: number
  /** Higher is more severe. */
  level: number
  step: string
  message: string
}

export interface TemplateNameRow {
  /** Empty for names of the installation. */
  namespace: string
  alias: string
  template_id: string
  created_at: number
}

/** Tag history: builds keep the tags that they were given. A tag selects the newest ready build that has it. */
export interface TemplateTagRow {
  template_id: string
  tag: string
  build_id: string
  created_at: number
}

export interface SnapshotRow {
  /** ID on the node. */
  id: string
  team_id: string
  sandbox_id: string
  holder: string | null
  /** Null if unpublished, or if the build was deleted. */
  build_id: string | null
  /** Null for snapshots of old Atoll versions. */
  size_bytes: number | null
  created_at: number
  /** Null if the row is of an old Atoll version and not claimed yet. */
  node_id: string | null
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
  /** Whether a client or an operator asked for the end. */
  kill_requested: number
  end_reason: string | null
  ended_at: number | null
  auto_pause: number
  auto_pause_memory: number
  auto_resume: number
  /** Null for sandboxes created by old Atoll versions. */
  timeout_seconds: number | null
  /** State that a resume restores. */
  kept: string | null
  /** Null while running, or if never measured. */
  kept_bytes: number | null
  /** Null if the row is of an old Atoll version and not claimed yet. */
  node_id: string | null
  generation: number
  /** Value of `end_at` for which the next three columns hold: an older release that pauses changes `end_at` alone. */
  kept_end_at: number | null
  /** Generation that was paused. */
  kept_generation: number | null
  /** Random ID of the pause. */
  kept_id: string | null
  /** Generation whose content the object store has. */
  durable_generation: number | null
  /** Newest generation whose content may be in the object store. */
  stored_generation: number | null
  /** Sandbox that this one is a copy of; null if it began as a template. */
  parent_id: string | null
  /** Kind of the copy. */
  parent_kind: string | null
  /** Generation to which the next three columns apply. */
  move_generation: number | null
  /** End of the timeout of a sandbox that is being moved to another node. */
  move_end_at: number | null
  /** Why the sandbox could not be moved. */
  move_problem: string | null
  /** When the next attempt may begin. */
  move_retry_at: number | null
}

export interface SandboxEventRow {
  sandbox_id: string
  at: number
  kind: string
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
