/**
 * Sessions of the dashboard. The server keeps the hash of a session's token, and the API key of the session encrypted
 * under that token. Only the browser has the token, so neither memory nor the file reveals a usable credential. Every
 * request uses the key, so a session ends when its key is deleted.
 */
import { randomBytes } from 'node:crypto'
import type { Clock } from '@atoll/kit/clock'
import { hashOf, seal, unseal } from './sealed.ts'
import type { SessionFile, StoredSession } from './session-file.ts'

export const sessionSeconds = 12 * 60 * 60
/** An operator can end every sandbox, so the session is short. */
export const operatorSeconds = 60 * 60
const maxSessions = 1_000

export interface Sessions {
  /** Returns the token of a new session. */
  open(apiKey: string): Promise<string>
  /** Returns the API key of a live session. */
  findKey(token: string): string | undefined
  close(token: string): Promise<void>
}

export async function openSessions(
  file: SessionFile,
  clock: Clock,
  seconds = sessionSeconds,
): Promise<Sessions> {
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
      const expiresAt = clock.now().getTime() + seconds * 1_000
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
