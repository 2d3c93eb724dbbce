import { storeLocation } from '../config.ts'
import type { ApiConfig } from '../config.ts'
import type { OnQuery } from '../db/query-record.ts'
import { checkStoreIdentity } from '../db/store-identity.ts'
import { openStores } from '../db/stores.ts'
import type { Stores } from '../db/stores.ts'

/**
 * Opens and migrates the store. Call it before a node starts: the store of a newer release or of another installation
 * is rejected before anything has changed.
 */
export async function openStore(config: ApiConfig, onQuery?: OnQuery): Promise<Stores> {
  const stores = await openStores(storeLocation(config), onQuery)
  try {
    await checkStoreIdentity(config.ATOLL_DATA_DIR, stores.settings)
    return stores
  } catch (error) {
    await stores.close()
    throw error
  }
}
