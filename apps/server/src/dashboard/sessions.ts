/**
 * Sessions of the dashboard. The server keeps the hash of a session's token, and the API key of the session encrypted
 * under that token. Only the browser has the token, so neither memory nor the file reveals a usable credential. Every
 * request uses the key, so a session ends when its key is deleted.
 */
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'
import type { Clock } from '@atoll/kit/clock'
import type { SessionFile, StoredSession } from './session-file.ts'

export const sessionSeconds = 12 * 60 * 60
const maxSessions = 1_000

export interface Sessions {
  /** Returns the token of a new session. */
  open(apiKey: string): Promise<string>
  /** Returns the API key of a live session. */
  findKey(token: string): string | undefined
  close(token: string): Promise<void>
}

export async function openSessions(file: SessionFile, clock: Clock): Promise<Sessions> {
  const live = new Map((await file.read()).map((session) => [session.hash, session]))
  const isLive = ({ expiresAt }: StoredSession) => expiresAt > clock.now().getTime()
  const save = async () => {
    for (const [hash, session] of live) if (!isLive(session)) live.delete(hash)
    // Insertion order is age: the oldest sessions make room.
    for (const hash of live.keys()) if (live.size > maxSessions) live.delete(hash)
    await file.write([...live.values()])
  }
  return {
    async open(apiKey) {
      const token = randomBytes(32).toString('base64url')
      const hash = hashOf(token)
      const expiresAt = clock.now().getTime() + sessionSeconds * 1_000
      live.set(hash, { hash, sealedKey: seal(apiKey, token), expiresAt })
      await save()
      return token
    },
    findKey(token) {
      const session = live.get(hashOf(token))
      return session && isLive(session) ? unseal(session.sealedKey, token) : undefined
    },
    async close(token) {
      if (live.delete(hashOf(token))) await save()
    },
  }
}

function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('base64url')
}

const cipher = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

function sealingKey(token: string): Buffer {
  return Buffer.from(hkdfSync('sha256', token, '', 'atoll dashboard session', 32))
}

function seal(text: string, token: string): string {
  const nonce = randomBytes(nonceBytes)
  const sealing = createCipheriv(cipher, sealingKey(token), nonce)
  const body = Buffer.concat([sealing.update(text, 'utf8'), sealing.final()])
  return Buffer.concat([nonce, sealing.getAuthTag(), body]).toString('base64url')
}

/** Returns undefined for a damaged record. */
function unseal(sealed: string, token: string): string | undefined {
  try {
    const bytes = Buffer.from(sealed, 'base64url')
    const opening = createDecipheriv(cipher, sealingKey(token), bytes.subarray(0, nonceBytes))
    opening.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes))
    const body = bytes.subarray(nonceBytes + tagBytes)
    return Buffer.concat([opening.update(body), opening.final()]).toString('utf8')
  } catch {
    return undefined
  }
}
