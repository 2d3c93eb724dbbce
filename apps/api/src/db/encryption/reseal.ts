import type { KeyRing } from '@atoll/kit/encryption/key-ring'
import { isSealed } from '@atoll/kit/encryption/sealed-text'
import type { Kysely } from 'kysely'
import type { SandboxNetwork } from '../../domain/network/network.ts'
import { fromNetworkText, toNetworkText } from '../migrations/network-columns.ts'
import type { Schema } from '../schema.ts'
import { secretIdentity } from '../secrets.ts'
import { listValues, openNetwork, sealNetwork } from './network-values.ts'
import { resealSettings } from './sealed-settings.ts'

type Db = Kysely<Schema>

export interface StoreReseal {
  /** Records with values that were plain or had an older key. */
  readonly resealed: number
  /** Records among them that held plain values. */
  readonly plain: number
  /** Records with values that no key opens. They are left as they are. */
  readonly unreadable: number
}

/**
 * Seals all private values of the store with the current key. Each record is replaced only if it was not changed
 * meanwhile: every other write uses the current key already.
 */
export async function resealStore(db: Db, keyRing: KeyRing): Promise<StoreReseal> {
  const count = { resealed: 0, plain: 0, unreadable: 0 }
  for await (const row of pagesOf((after) => secretPage(db, after))) {
    if (!keyRing.isStale(row.value)) continue
    const plain = openSecret(row, keyRing)
    if (plain === undefined) {
      count.unreadable += 1
      continue
    }
    await resealSecret(db, row, plain, keyRing)
    count.resealed += 1
    if (!isSealed(row.value)) count.plain += 1
  }
  for await (const row of pagesOf((after) => networkPage(db, after))) {
    const network = fromNetworkText(row.value) ?? {}
    const stale = listValues(network).filter((value) => keyRing.isStale(value))
    if (stale.length === 0) continue
    const opened = openNetwork(row.id, network, keyRing)
    if (listValues(opened).some(isSealed)) count.unreadable += 1
    await resealNetwork(db, row, opened, keyRing)
    count.resealed += 1
    if (!stale.every(isSealed)) count.plain += 1
  }
  const settings = await resealSettings(db, keyRing)
  return {
    resealed: count.resealed + settings.resealed,
    plain: count.plain + settings.plain,
    unreadable: count.unreadable + settings.unreadable,
  }
}

function openSecret({ id, value }: Row, keyRing: KeyRing): string | undefined {
  if (!isSealed(value)) return value
  try {
    return keyRing.open(value, secretIdentity(id))
  } catch {
    return undefined
  }
}

async function resealSecret(db: Db, row: Row, plain: string, keyRing: KeyRing): Promise<void> {
  using write = keyRing.beginWrite()
  await db
    .updateTable('secrets')
    .set({ value: write.seal(plain, secretIdentity(row.id)) })
    .where('id', '=', row.id)
    .where('value', '=', row.value)
    .execute()
}

async function resealNetwork(
  db: Db,
  row: Row,
  opened: SandboxNetwork,
  keyRing: KeyRing,
): Promise<void> {
  using write = keyRing.beginWrite()
  await db
    .updateTable('sandboxes')
    .set({ network: toNetworkText(sealNetwork(row.id, opened, write)) })
    .where('id', '=', row.id)
    .where('network', '=', row.value)
    .execute()
}

interface Row {
  readonly id: string
  readonly value: string
}

const pageSize = 200

async function* pagesOf(page: (after: string) => Promise<Row[]>): AsyncGenerator<Row> {
  for (let after = ''; ;) {
    const rows = await page(after)
    yield* rows
    const last = rows.at(-1)
    if (!last || rows.length < pageSize) return
    after = last.id
  }
}

function secretPage(db: Db, after: string): Promise<Row[]> {
  return db
    .selectFrom('secrets')
    .select(['id', 'value'])
    .where('id', '>', after)
    .orderBy('id')
    .limit(pageSize)
    .execute()
}

async function networkPage(db: Db, after: string): Promise<Row[]> {
  return db
    .selectFrom('sandboxes')
    .select(['id', 'network as value'])
    .where('network', 'is not', null)
    .where('id', '>', after)
    .orderBy('id')
    .limit(pageSize)
    .$narrowType<{ value: string }>()
    .execute()
}
