import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { writeFileAtomic } from '@atoll/kit/atomic-file'
import type { Logger } from '@atoll/kit/log'

const StoredShare = z.object({
  /** Names the link in lists. It gives no access. */
  id: z.string(),
  hash: z.string(),
  sealedKey: z.string(),
  teamId: z.string(),
  sandboxId: z.string(),
  /** Unix milliseconds. */
  createdAt: z.number(),
  expiresAt: z.number(),
})

export type StoredShare = z.infer<typeof StoredShare>

export interface ShareFile {
  read(): Promise<StoredShare[]>
  write(shares: readonly StoredShare[]): Promise<void>
}

/** A missing or damaged file costs new links and nothing else. Unlike sessions, a failed write is reported to the user. */
export function openShareFile(path: string, log: Logger): ShareFile {
  let writing = Promise.resolve()
  return {
    async read() {
      try {
        return z.array(StoredShare).parse(JSON.parse(await readFile(path, 'utf8')))
      } catch (error) {
        const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
        if (!isMissing) log.warn({ err: error, path }, 'the share links cannot be read')
        return []
      }
    },
    async write(shares) {
      const text = JSON.stringify(shares)
      const next = writing.then(() => writeFileAtomic(path, text, 0o600))
      writing = next.catch(() => {}) // the next write is tried anyway
      await next
    },
  }
}
