import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { writeFileAtomic } from '@atoll/kit/atomic-file'
import type { Logger } from '@atoll/kit/log'

const StoredSession = z.object({
  hash: z.string(),
  sealedKey: z.string(),
  /** Unix milliseconds. */
  expiresAt: z.number(),
})

export type StoredSession = z.infer<typeof StoredSession>

export interface SessionFile {
  read(): Promise<StoredSession[]>
  write(sessions: readonly StoredSession[]): Promise<void>
}

/**
 * Keeps sessions in a file beside the store, so that users stay signed in when the server restarts. A missing or damaged file
 * costs a new sign-in and nothing else, so it never stops the server.
 */
export function openSessionFile(path: string, log: Logger): SessionFile {
  let writing = Promise.resolve()
  return {
    async read() {
      try {
        return z.array(StoredSession).parse(JSON.parse(await readFile(path, 'utf8')))
      } catch (error) {
        const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
        if (!isMissing) log.warn({ err: error, path }, 'the dashboard sessions cannot be read')
        return []
      }
    },
    write(sessions) {
      const text = JSON.stringify(sessions)
      const next = writing.then(() => writeFileAtomic(path, text, 0o600))
      writing = next.catch((error: unknown) => {
        log.warn({ err: error, path }, 'the dashboard sessions cannot be saved')
      })
      return writing
    },
  }
}
