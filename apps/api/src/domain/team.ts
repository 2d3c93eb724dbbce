import type { ApiKey, Secret } from './key.ts'

export interface Team {
  readonly id: string
  readonly name: string
}

export interface User {
  readonly id: string
  readonly email: string | null
  readonly defaultTeamId: string
}

/** The one on whose behalf a request acts. */
export interface Caller {
  readonly teamId: string
  /** Absent for API keys: they belong to a team, not to a person. */
  readonly user?: { readonly id: string; readonly email: string | null } | undefined
}

export interface TeamStore {
  isEmpty(): Promise<boolean>
  /** All or nothing. */
  insertFirst(first: FirstTeam): Promise<void>
  findUserByTokenHash(hash: string): Promise<User | undefined>
  isMember(userId: string, teamId: string): Promise<boolean>
}

export interface FirstTeam {
  readonly team: Team
  readonly user: User
  readonly apiKey: ApiKey
  readonly apiKeyHash: string
  readonly accessToken: Secret
  readonly now: Date
}

/** Values that belong to the whole installation. */
export interface SettingStore {
  /** The kept value; `make` gives it the first time. */
  ensure(name: string, make: () => string): Promise<string>
}
