import { keyFileOf, openKeyFile } from '@atoll/kit/encryption/key-file'
import { storeLocation } from '../config.ts'
import type { ApiConfig } from '../config.ts'
import { checkKeyFile } from '../db/encryption/key-check.ts'
import type { OnQuery } from '../db/query-record.ts'
import { checkStoreIdentity } from '../db/store-identity.ts'
import { openStores } from '../db/stores.ts'
import type { Stores } from '../db/stores.ts'

/**
 * Opens and migrates the store, and seals values from before encryption. Call it before a node starts: the store of a
 * newer release or of another installation, and a wrong key file, are rejected before anything has changed.
 */
export async function openStore(config: ApiConfig, onQuery?: OnQuery): Promise<Stores> {
  const { ATOLL_DATA_DIR: dataDir, ATOLL_ENCRYPTION_KEY_FILE } = config
  const keyFile = keyFileOf(dataDir, ATOLL_ENCRYPTION_KEY_FILE)
  const opened = await openKeyFile(keyFile)
  const stores = await openStores(storeLocation(config), opened.keyRing, onQuery)
  try {
    await checkStoreIdentity(dataDir, stores.settings)
    await checkKeyFile(keyFile, opened, stores.settings)
    await stores.reseal()
    return stores
  } catch (error) {
    await stores.close()
    throw error
  }
}
