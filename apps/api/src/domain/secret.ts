import { randomBytes } from 'node:crypto'
import { Fault } from '@atoll/kit/fault'
import type { Position } from './sandbox-store.ts'

/** What a team keeps for the headers of its sandboxes' requests. */
export interface Secret {
  readonly id: string
  readonly teamId: string
  /** In lower case. */
  readonly name: string
  readonly version: number
  readonly metadata: Readonly<Record<string, string>>
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** Values go in, and come out only to be told to a node. */
export interface SecretStore {
  /** False when the team has one of that name, or `limit` of them. */
  insert(secret: Secret, value: string, limit: number): Promise<'ok' | 'taken' | 'full'>
  /** `idOrName` in lower case. */
  find(teamId: string, idOrName: string): Promise<Secret | undefined>
  /** Newest first. */
  list(
    teamId: string,
    page: { readonly limit: number; readonly after: Position | undefined },
  ): Promise<Secret[]>
  /** The next version; without metadata that stays. Undefined when there is none such. */
  replace(
    teamId: string,
    idOrName: string,
    next: { readonly value: string; readonly metadata: Secret['metadata'] | undefined },
    now: Date,
  ): Promise<Secret | undefined>
  /** Gives what was removed. */
  delete(teamId: string, idOrName: string): Promise<Secret | undefined>
  /** By name; those that are not there are not in it. */
  values(teamId: string, names: readonly string[]): Promise<ReadonlyMap<string, string>>
}

/** A team that needs more keeps them where nobody looks any more. */
export const mostSecrets = 1000

const letters = 'abcdefghijklmnopqrstuvwxyz0123456789'

export function newSecretId(): string {
  const chosen = Array.from(randomBytes(26), (byte) => letters[byte % letters.length])
  return `sec_${chosen.join('')}`
}

export function absentSecret(): Fault {
  return new Fault(
    'not_found',
    'secret_not_found',
    'There is no such secret: GET /secrets lists those of your team',
  )
}
