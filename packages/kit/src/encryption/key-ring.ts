import { randomBytes } from 'node:crypto'
import { Fault } from '../fault.ts'
import { isSealed, keyBytes, keyIdOf, openText, sealText, toEncryptionKey } from './sealed-text.ts'
import type { EncryptionKey } from './sealed-text.ts'

/** Keys that seal and open the private values of records. They are kept in memory. */
export interface KeyRing {
  /** Key of new values. */
  readonly currentId: string
  /** The current key and older ones, as in the key file. */
  readonly keyIds: readonly string[]
  /** Throws a fault when the key is missing or the value is damaged. */
  open(sealed: string, identity: string): string
  /** Begins a write with the current key. Dispose it when the write is on disk: `settled` waits for it. */
  beginWrite(): SealingWrite
  /** Returns whether the text has to be sealed again: it is plain, or sealed with an older key. */
  isStale(text: string): boolean
  /** Makes a new key the current one, after it is in the file. Returns its ID. */
  add(): Promise<string>
  /** Resolves when no write with an older key is under way. */
  settled(): Promise<void>
  /** Removes all keys but the current one from the file. Reads that are under way can still use them. */
  dropOlder(): Promise<void>
}

export interface SealingWrite extends Disposable {
  seal(plain: string, identity: string): string
}

/** `save` replaces the content of the key file: synced to disk on return. */
export function createKeyRing(
  first: readonly EncryptionKey[],
  save: (keys: readonly EncryptionKey[]) => Promise<void>,
): KeyRing {
  let keys = first
  /** Keys that this process has known. A key that left the file still opens values that were read before. */
  const known = new Map(first.map((key) => [key.id, key]))
  const current = () => {
    const [newest] = keys
    if (!newest) throw new Error('a key ring without keys')
    return newest
  }
  const writes = createWriteCounts(() => current().id)

  return {
    get currentId() {
      return current().id
    },
    get keyIds() {
      return keys.map(({ id }) => id)
    },
    open(sealed, identity) {
      const id = keyIdOf(sealed)
      if (id === undefined) throw damaged()
      const key = known.get(id)
      if (!key) throw keyMissing(id)
      return openText(key, sealed, identity) ?? fail(damaged())
    },
    beginWrite() {
      const key = current()
      writes.begin(key.id)
      return {
        seal: (plain, identity) => sealText(key, plain, identity),
        [Symbol.dispose]: () => writes.end(key.id),
      }
    },
    isStale: (text) => !isSealed(text) || keyIdOf(text) !== current().id,
    async add() {
      const key = newKey()
      await save([key, ...keys])
      known.set(key.id, key)
      keys = [key, ...keys]
      return key.id
    },
    settled: writes.settled,
    async dropOlder() {
      const left = [current()]
      await save(left)
      keys = left
    },
  }
}

/** Counts the writes under way by key. */
function createWriteCounts(currentId: () => string) {
  const writes = new Map<string, number>()
  let waiting: (() => void)[] = []
  const hasOldWrites = () => [...writes.keys()].some((id) => id !== currentId())
  return {
    begin: (id: string) => void writes.set(id, (writes.get(id) ?? 0) + 1),
    end(id: string): void {
      const left = (writes.get(id) ?? 1) - 1
      if (left > 0) return void writes.set(id, left)
      writes.delete(id)
      if (hasOldWrites()) return
      for (const resolve of waiting) resolve()
      waiting = []
    },
    settled(): Promise<void> {
      if (!hasOldWrites()) return Promise.resolve()
      return new Promise((resolve) => void waiting.push(resolve))
    },
  }
}

export function newKey(): EncryptionKey {
  return toEncryptionKey(randomBytes(keyBytes))
}

function keyMissing(keyId: string): Fault {
  return new Fault(
    'unavailable',
    'encryption_key_missing',
    `The value is encrypted with the key ${keyId}, which is not in the key file of the server. Ask an operator to restore that key.`,
  )
}

function damaged(): Fault {
  return new Fault(
    'unavailable',
    'encrypted_value_damaged',
    'The encrypted value cannot be opened: it is damaged, or belongs to another record. Ask an operator to restore it from a backup.',
  )
}

function fail(fault: Fault): never {
  throw fault
}
