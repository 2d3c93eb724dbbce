/** The rows of the store. Times are milliseconds since 1970, flags are 0 or 1: the same in every database. */
export interface Schema {
  settings: { name: string; value: string }
  teams: { id: string; name: string; created_at: number }
  users: { id: string; email: string | null; default_team_id: string; created_at: number }
  api_keys: ApiKeyRow
  access_tokens: { id: string; user_id: string; hash: string; mask: string; created_at: number }
  templates: TemplateRow
  sandboxes: SandboxRow
  sandbox_metadata: { sandbox_id: string; key: string; value: string }
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
  build_id: string
  alias: string | null
  public: number
  node_template_id: string
  cpu_count: number
  memory_mb: number
  disk_size_mb: number
  created_at: number
  updated_at: number
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
  created_at: number
  envd_version: string | null
  started_at: number | null
  end_at: number | null
  end_reason: string | null
  ended_at: number | null
}
