import assert from 'node:assert/strict'
import { mkdtempDisposable, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { checkStoreIdentity } from './store-identity.ts'

function memorySettings() {
  const all = new Map<string, string>()
  return {
    async ensure(name: string, make: () => string) {
      const value = all.get(name) ?? make()
      all.set(name, value)
      return value
    },
  }
}

test('a data directory belongs to the store it was first started with', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-store-'))
  const path = join(folder.path, 'store-id')
  const first = memorySettings()
  await checkStoreIdentity(folder.path, first)
  await checkStoreIdentity(folder.path, first)
  const kept = await readFile(path, 'utf8')
  const another = memorySettings()
  await assert.rejects(checkStoreIdentity(folder.path, another), { reason: 'store_mismatch' })
  assert.equal(await readFile(path, 'utf8'), kept)
  await rm(path)
  await checkStoreIdentity(folder.path, another)
  await assert.rejects(checkStoreIdentity(folder.path, first), { reason: 'store_mismatch' })
})
