import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileAtomic } from '@atoll/kit/atomic-file'
import { Fault } from '@atoll/kit/fault'
import { randomHex } from '@atoll/kit/id'
import type { SettingStore } from '../domain/teams/team.ts'

/**
 * Refuses a store that does not belong to the data directory. The API deletes sandboxes, snapshots and templates from
 * its node that the store does not know. A lost, new or mistyped store would delete all of them.
 */
export async function checkStoreIdentity(
  dataDir: string,
  settings: Pick<SettingStore, 'ensure'>,
): Promise<void> {
  const path = join(dataDir, 'store-id')
  const storeId = await settings.ensure('store_id', () => randomHex(16))
  const kept = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (kept?.trim() === storeId) return
  if (kept !== undefined) throw mismatch(dataDir, path)
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  await writeFileAtomic(path, `${storeId}\n`, 0o600)
}

function mismatch(dataDir: string, path: string): Fault {
  return new Fault(
    'conflict',
    'store_mismatch',
    `The store does not belong to ${dataDir}: it is new, or belongs to another installation. ` +
      'Nothing was changed. Starting would remove every sandbox, snapshot and template there that this store does not ' +
      'know. Bring back the store that belongs to it: the file atoll.db there, or the PostgreSQL of ATOLL_DATABASE_URL. ' +
      `To give up what is there, delete ${path} and start again.`,
  )
}
