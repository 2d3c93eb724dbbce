import type { ApiKey, Mask } from './key.ts'
import type { OwnLimits } from './limits.ts'
import type { TeamBlock } from './team-block.ts'

export interface Team {
  readonly id: string
  readonly name: string
  /** The namespace of its template names. No other team has it, and it stays when the team is renamed. */
  readonly slug: string
  readonly createdAt: Date
  readonly limits: OwnLimits
  readonly block?: TeamBlock | undefined
}

export interface User {
  readonly id: string
  readonly email: string | null
  readonly defaultTeamId: string
}

/** The one on whose behalf a request acts. */
export interface Caller {
  readonly teamId: string
  /** Absent for API keys, which belong to a team, and for operators. */
  readonly user?: { readonly id: string; readonly email: string | null } | undefined
  /** An operator on behalf of the team; what the team may not do does not bind them. */
  readonly isOperator?: true
}

export interface TeamStore {
  isEmpty(): Promise<boolean>
  /** All or nothing. */
  insertFirst(first: FirstTeam): Promise<void>
  /** Gives it as it is kept: with another slug where the wanted one is taken. */
  insert(team: Team): Promise<Team>
  find(id: string): Promise<Team | undefined>
  /** Oldest first. */
  list(): Promise<Team[]>
  /** Applies `change` alone. Undefined when there is no such team. */
  update(id: string, change: (current: Team) => Team): Promise<Team | undefined>
  isMember(userId: string, teamId: string): Promise<boolean>
  /** The longest member first. */
  listOfUser(userId: string): Promise<Team[]>
}

export interface FirstTeam {
  readonly team: Team
  readonly user: User
  readonly apiKey: ApiKey
  readonly apiKeyHash: string
  readonly accessToken: AccessToken
  readonly accessTokenHash: string
}

export interface UserStore {
  findByTokenHash(hash: string): Promise<User | undefined>
  findByEmail(email: string): Promise<User | undefined>
  /** With their first team and token, all or nothing. False when somebody has this email already. */
  insert(user: NewUser): Promise<boolean>
  addMember(userId: string, teamId: string, now: Date): Promise<void>
  /** False when they were no member. */
  removeMember(userId: string, teamId: string): Promise<boolean>
}

export interface NewUser {
  readonly user: User
  readonly token: AccessToken
  readonly hash: string
}

export interface AccessToken {
  readonly id: string
  readonly userId: string
  readonly name: string
  readonly mask: Mask
  readonly createdAt: Date
}

export interface AccessTokenStore {
  insert(token: AccessToken, hash: string): Promise<void>
  /** False when the user has no such token. */
  delete(userId: string, id: string): Promise<boolean>
}

const slugLength = 40

/** What can stand in a reference to a template. With `id` it is hardly anybody else's. */
export function toSlug(name: string, id?: string): string {
  const plain = name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^a-z0-9_]+/g, '-')
    .slice(0, slugLength)
    .replaceAll(/^-+|-+$/g, '')
  const slug = plain === '' ? 'team' : plain
  return id === undefined ? slug : `${slug}-${id.slice(0, 8)}`
}

/** Values that belong to the whole installation. */
export interface SettingStore {
  /** The kept value; `make` gives it the first time. */
  ensure(name: string, make: () => string): Promise<string>
}
