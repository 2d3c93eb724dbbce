import { createHash, createHmac } from 'node:crypto'
import { randomHex } from '@atoll/kit/id'

/** API keys belong to a team, access tokens to a user. The store keeps only hashes. */

export const apiKeyPrefix = 'e2b_'
export const accessTokenPrefix = 'sk_e2b_'

const secretBytes = 20

export interface Secret {
  readonly value: string
  readonly hash: string
  readonly mask: Mask
}

/** Parts of a secret that may be shown after its creation. */
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
  /** Returns false when the team has no such key. */
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

/** A fast hash is enough: the values are 160 random bits and cannot be guessed. */
export function hashSecret(value: string): string {
  return createHash('sha256').update(value).digest('hex')
}

/** Cheap format check before a store lookup. */
export function looksLike(prefix: string, value: string): boolean {
  return value.startsWith(prefix) && /^[0-9a-f]{40}$/.test(value.slice(prefix.length))
}

/** Derives the envd token from the sandbox ID, so that the token never changes. */
export function envdAccessToken(seed: string, sandboxId: string): string {
  return createHmac('sha256', seed).update(sandboxId).digest('hex')
}

/** Derives the token for requests to a private sandbox. Sandbox IDs have no colon, so envd tokens cannot collide. */
export function trafficAccessToken(seed: string, sandboxId: string): string {
  return createHmac('sha256', seed).update(`traffic:${sandboxId}`).digest('hex')
}

/** Signs an upload URL: lets a client without an API key upload one archive for a team until `expiresAt`. */
export function buildFilesSignature(
  seed: string,
  { teamId, hash, expiresAt }: { teamId: string; hash: string; expiresAt: Date },
): string {
  const text = `build-files:${teamId}:${hash}:${expiresAt.getTime()}`
  return createHmac('sha256', seed).update(text).digest('hex')
}
