import type { ApiKey, Mask } from './key.ts'
import type { OwnLimits } from './limits.ts'
import type { TeamBlock } from './team-block.ts'

export interface Team {
  readonly id: string
  readonly name: string
  /** Namespace of the template names of the team. Unique, and unchanged when the team is renamed. */
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

/** Identity on whose behalf a request runs. */
export interface Caller {
  readonly teamId: string
  /** Undefined for API keys, which belong to a team, and for operators. */
  readonly user?: { readonly id: string; readonly email: string | null } | undefined
  /** Operator acting for the team; a block of the team does not apply. */
  readonly isOperator?: true
}

export interface TeamStore {
  isEmpty(): Promise<boolean>
  /** Atomic. */
  insertFirst(first: FirstTeam): Promise<void>
  /** Returns the stored team, which has another slug if the requested one was taken. */
  insert(team: Team): Promise<Team>
  find(id: string): Promise<Team | undefined>
  /** Oldest first. */
  list(): Promise<Team[]>
  /** Applies `change` atomically. Undefined if there is no such team. */
  update(id: string, change: (current: Team) => Team): Promise<Team | undefined>
  isMember(userId: string, teamId: string): Promise<boolean>
  /** Oldest membership first. */
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
  /** Atomically inserts the user, membership and token. Returns false if the email is taken. */
  insert(user: NewUser): Promise<boolean>
  addMember(userId: string, teamId: string, now: Date): Promise<void>
  /** Returns false if the user was not a member. */
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
  /** Returns false if the user has no such token. */
  delete(userId: string, id: string): Promise<boolean>
}

const slugLength = 40

/** Converts a team name for use in template references. `id` adds a suffix that makes a collision unlikely. */
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

/** Settings of the whole installation. */
export interface SettingStore {
  find(name: string): Promise<string | undefined>
  /** Returns the stored value; calls `make` if there is none yet. */
  ensure(name: string, make: () => string): Promise<string>
}
