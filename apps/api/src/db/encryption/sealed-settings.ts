import type { KeyRing } from '@atoll/kit/encryption/key-ring'
import { isSealed } from '@atoll/kit/encryption/sealed-text'
import type { Kysely } from 'kysely'
import type { SettingStore } from '../../domain/teams/team.ts'
import type { Schema } from '../schema.ts'
import { checkSetting } from './key-check.ts'

/** Key of the authority of a fleet. Who has it can call as any part. */
const authoritySetting = 'fleet_authority'
const sealedNames = [checkSetting, authoritySetting]

/** Settings that are private. */
export type SealedSettingStore = Pick<SettingStore, 'ensure'>

export function sealedSettingStore(settings: SettingStore, keyRing: KeyRing): SealedSettingStore {
  return {
    async ensure(name, make) {
      if (!sealedNames.includes(name)) throw new Error(`the setting ${name} is never sealed again`)
      using write = keyRing.beginWrite()
      const stored = await settings.ensure(name, () => write.seal(make(), identityOf(name)))
      return isSealed(stored) ? keyRing.open(stored, identityOf(name)) : stored
    },
  }
}

/** Seals settings with the current key. */
export async function resealSettings(
  db: Kysely<Schema>,
  keyRing: KeyRing,
): Promise<{ resealed: number; plain: number; unreadable: number }> {
  const count = { resealed: 0, plain: 0, unreadable: 0 }
  const query = db.selectFrom('settings').selectAll().where('name', 'in', sealedNames)
  for (const { name, value } of await query.execute()) {
    if (!keyRing.isStale(value)) continue
    const plain = tryOpen(keyRing, name, value)
    if (plain === undefined) {
      count.unreadable += 1
      continue
    }
    using write = keyRing.beginWrite()
    const sealed = write.seal(plain, identityOf(name))
    // Another process may have sealed it meanwhile.
    await db
      .updateTable('settings')
      .set({ value: sealed })
      .where('name', '=', name)
      .where('value', '=', value)
      .execute()
    // The check belongs to the key file, and is no record of an operator.
    if (name !== checkSetting) count.resealed += 1
    if (!isSealed(value)) count.plain += 1
  }
  return count
}

function tryOpen(keyRing: KeyRing, name: string, value: string): string | undefined {
  if (!isSealed(value)) return value
  try {
    return keyRing.open(value, identityOf(name))
  } catch {
    return undefined
  }
}

function identityOf(name: string): string {
  return `setting:${name}`
}
