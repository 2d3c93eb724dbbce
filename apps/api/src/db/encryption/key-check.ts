import { rm } from 'node:fs/promises'
import type { KeyFile, OpenedKeyFile } from '@atoll/kit/encryption/key-file'
import type { KeyRing } from '@atoll/kit/encryption/key-ring'
import { keyIdOf } from '@atoll/kit/encryption/sealed-text'
import { Fault } from '@atoll/kit/fault'
import type { SettingStore } from '../../domain/teams/team.ts'

/** Setting with a sealed text. A server whose keys cannot open it has the wrong key file. */
export const checkSetting = 'encryption_check'
const checkIdentity = `setting:${checkSetting}`
const checkText = 'atoll'

/**
 * Refuses a key file that does not belong to the store, before a value is written with the wrong key. Saves the key file
 * of a new installation.
 */
export async function checkKeyFile(
  file: KeyFile,
  { keyRing, isNew, save }: OpenedKeyFile,
  settings: SettingStore,
): Promise<void> {
  const kept = await settings.find(checkSetting)
  if (kept !== undefined) return checkOpens(file, keyRing, kept)
  if (isNew) await save()
  using write = keyRing.beginWrite()
  const sealed = write.seal(checkText, checkIdentity)
  const stored = await settings.ensure(checkSetting, () => sealed)
  try {
    checkOpens(file, keyRing, stored)
  } catch (error) {
    // Another server on the same database was first. The key that was just made has sealed nothing.
    if (isNew) await rm(file.path, { force: true })
    throw error
  }
}

function checkOpens(file: KeyFile, keyRing: KeyRing, sealed: string): void {
  try {
    if (keyRing.open(sealed, checkIdentity) === checkText) return
  } catch (error) {
    throw wrongKey(file, sealed, error)
  }
  throw wrongKey(file, sealed)
}

function wrongKey({ path, isSupplied }: KeyFile, sealed: string, cause?: unknown): Fault {
  const remedy = isSupplied
    ? 'Set ATOLL_ENCRYPTION_KEY_FILE to the file with that key'
    : 'Restore that file from a backup, or set ATOLL_ENCRYPTION_KEY_FILE to the file with that key'
  return new Fault(
    'conflict',
    'encryption_key_wrong',
    `The store is encrypted with the key ${keyIdOf(sealed) ?? '(unknown)'}, which is not in ${path}. Nothing was changed. ` +
      `${remedy}. All servers on one database need the same key file.`,
    { cause },
  )
}
