import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSealed } from '@atoll/kit/encryption/sealed-text'
import { makeStore, unsavedKeys } from '../../sim/store.ts'
import { openStores } from '../stores.ts'

const name = 'fleet_authority'
const secret = '{"key":"of the authority"}'

async function setup() {
  const store = await makeStore()
  const keyRing = unsavedKeys()
  const stores = await openStores(store.location, keyRing)
  return {
    ...{ stores, keyRing },
    async [Symbol.asyncDispose]() {
      await stores.close()
      await store[Symbol.asyncDispose]()
    },
  }
}

test('a sealed setting is read as it was made, and no plain text is in the table', async () => {
  await using tested = await setup()
  const { sealedSettings, settings } = tested.stores
  assert.equal(await sealedSettings.ensure(name, () => secret), secret)
  assert.equal(await sealedSettings.ensure(name, () => 'another'), secret)
  assert.ok(isSealed((await settings.find(name)) ?? ''))
})

test('a new key seals the setting again, and an older key is no longer needed', async () => {
  await using tested = await setup()
  const { stores, keyRing } = tested
  await stores.sealedSettings.ensure(name, () => secret)
  const before = await stores.settings.find(name)
  await keyRing.add()
  assert.deepEqual(await stores.reseal(), { resealed: 1, plain: 0, unreadable: 0 })
  const after = (await stores.settings.find(name)) ?? ''
  assert.notEqual(after, before)
  assert.equal(keyRing.isStale(after), false)
  assert.equal(await stores.sealedSettings.ensure(name, () => 'another'), secret)
})

test('a setting from before encryption is sealed', async () => {
  await using tested = await setup()
  const { stores } = tested
  await stores.settings.ensure(name, () => secret)
  assert.equal(await stores.sealedSettings.ensure(name, () => 'another'), secret)
  assert.deepEqual(await stores.reseal(), { resealed: 1, plain: 1, unreadable: 0 })
  assert.ok(isSealed((await stores.settings.find(name)) ?? ''))
})

test('a setting that no key opens is counted, kept and reported', async () => {
  await using tested = await setup()
  const { stores } = tested
  using write = unsavedKeys().beginWrite()
  const foreign = write.seal(secret, `setting:${name}`)
  await stores.settings.ensure(name, () => foreign)
  assert.deepEqual(await stores.reseal(), { resealed: 0, plain: 0, unreadable: 1 })
  assert.equal(await stores.settings.find(name), foreign)
  await assert.rejects(
    stores.sealedSettings.ensure(name, () => 'another'),
    {
      reason: 'encryption_key_missing',
    },
  )
})
