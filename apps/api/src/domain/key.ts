import { createHash, createHmac } from 'node:crypto'
import { randomHex } from '@atoll/kit/id'

/** API keys (of a team) and access tokens (of a user). Only their hashes are kept. */

export const apiKeyPrefix = 'e2b_'
export const accessTokenPrefix = 'sk_e2b_'

const secretBytes = 20

export interface Secret {
  readonly value: string
  readonly hash: string
  readonly mask: Mask
}

/** What may be shown of a secret later on. */
export interface Mask {
  readonly prefix: string
  readonly valueLength: number
  readonly maskedValuePrefix: string
  readonly maskedValueSuffix: string
}

export interface ApiKey {
  readonly id: string
  readonly teamId: string
  readonly name: string
  readonly mask: Mask
  readonly createdAt: Date
  readonly createdBy: { readonly id: string; readonly email: string | null } | undefined
  readonly lastUsedAt: Date | undefined
}

export interface KeyStore {
  insert(key: ApiKey, hash: string): Promise<void>
  list(teamId: string): Promise<ApiKey[]>
  /** False when the team has no such key. */
  rename(teamId: string, id: string, name: string): Promise<boolean>
  delete(teamId: string, id: string): Promise<boolean>
  findByHash(hash: string): Promise<{ id: string; teamId: string } | undefined>
  recordUse(id: string, now: Date): Promise<void>
}

export function newSecret(prefix: string): Secret {
  const random = randomHex(secretBytes)
  const value = `${prefix}${random}`
  return {
    value,
    hash: hashSecret(value),
    mask: {
      prefix,
      valueLength: random.length,
      maskedValuePrefix: random.slice(0, 2),
      maskedValueSuffix: random.slice(-4),
    },
  }
}

/** A fast hash serves: the values are 160 random bits, nothing that can be guessed. */
export function hashSecret(value: string): string {
  return createHash('sha256').update(value).digest('hex')
}

/** Cheap sieve before the store is asked: the form that `newSecret` gives. */
export function looksLike(prefix: string, value: string): boolean {
  return value.startsWith(prefix) && /^[0-9a-f]{40}$/.test(value.slice(prefix.length))
}

/** The token of a sandbox's envd: derived, so that it stays the same for the life of the id. */
export function envdAccessToken(seed: string, sandboxId: string): string {
  return createHmac('sha256', seed).update(sandboxId).digest('hex')
}

/** The token that callers of a private sandbox need; no id of a sandbox has a colon. */
export function trafficAccessToken(seed: string, sandboxId: string): string {
  return createHmac('sha256', seed).update(`traffic:${sandboxId}`).digest('hex')
}

/** What lets somebody without a key send one archive for builds of a team, until then. */
export function buildFilesSignature(
  seed: string,
  { teamId, hash, expiresAt }: { teamId: string; hash: string; expiresAt: Date },
): string {
  const text = `build-files:${teamId}:${hash}:${expiresAt.getTime()}`
  return createHmac('sha256', seed).update(text).digest('hex')
}
