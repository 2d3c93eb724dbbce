import { createKeyRing, newKey } from '@atoll/kit/encryption/key-ring'
import type { KeyRing } from '@atoll/kit/encryption/key-ring'

/** Keys that are in no file. */
export function newKeys(): KeyRing {
  return createKeyRing([newKey()], async () => {})
}
