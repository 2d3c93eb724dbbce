import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileAtomic } from '@atoll/kit/atomic-file'
import { randomHex } from '@atoll/kit/id'

/**
 * Returns the ID of this process among those on one store. A data directory has one server at a time, so the ID
 * survives a restart: a restarted server cleans up after a crash without waiting for its old lease to expire.
 */
export async function readProcessId(dataDir: string): Promise<string> {
  const path = join(dataDir, 'api-id')
  const kept = await readFile(path, 'utf8').catch(() => '')
  if (/^[0-9a-f]{16}\n$/.test(kept)) return kept.trim()
  const id = randomHex(8)
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  await writeFileAtomic(path, `${id}\n`, 0o600)
  return id
}
