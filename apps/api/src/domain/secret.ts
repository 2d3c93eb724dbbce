import { randomBytes } from 'node:crypto'
import { Fault } from '@atoll/kit/fault'
import type { Position } from './paging.ts'

/** Secret of a team for headers of outgoing sandbox requests, without its value. */
export interface Secret {
  readonly id: string
  readonly teamId: string
  /** Lower case. */
  readonly name: string
  readonly version: number
  readonly metadata: Readonly<Record<string, string>>
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** Stores secret values. Values are read only to send them to a node. */
export interface SecretStore {
  /** Returns `taken` if the team has a secret of that name, `full` if it has `limit` secrets. */
  insert(secret: Secret, value: string, limit: number): Promise<'ok' | 'taken' | 'full'>
  /** `idOrName` must be lower case. */
  find(teamId: string, idOrName: string): Promise<Secret | undefined>
  /** Newest first. */
  list(
    teamId: string,
    page: { readonly limit: number; readonly after: Position | undefined },
  ): Promise<Secret[]>
  /** Creates the next version; undefined metadata keeps the old metadata. Undefined if there is no such secret. */
  replace(
    teamId: string,
    idOrName: string,
    next: { readonly value: string; readonly metadata: Secret['metadata'] | undefined },
    now: Date,
  ): Promise<Secret | undefined>
  /** Returns the deleted secret. */
  delete(teamId: string, idOrName: string): Promise<Secret | undefined>
  /** Values by name; missing secrets are left out. */
  values(teamId: string, names: readonly string[]): Promise<ReadonlyMap<string, string>>
}

/** Limit per team. */
export const maxSecrets = 1000

const letters = 'abcdefghijklmnopqrstuvwxyz0123456789'

export function newSecretId(): string {
  const chosen = Array.from(randomBytes(26), (byte) => letters[byte % letters.length])
  return `sec_${chosen.join('')}`
}

export function absentSecret(): Fault {
  return new Fault(
    'not_found',
    'secret_not_found',
    'There is no such secret: GET /secrets lists the secrets of your team',
  )
}
