import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { InstalledCa } from '../domain/trust/installed-ca.ts'
import { openCaTrust } from './ca-trust.ts'
import type { InstallResult } from './ca-trust.ts'

function setup(install: () => Promise<InstallResult>, before: InstalledCa = {}) {
  const told: string[] = []
  const kept: InstalledCa[] = [before]
  const trust = openCaTrust({
    store: {
      load: () => before,
      save: async (installed) => void kept.push(installed),
    },
    install,
    log: { write: (_level, message) => told.push(message) },
    timeoutMs: 20,
  })
  return { trust, told, kept }
}

test('nobody is told of a list that could not be written', async () => {
  const problems = ['/etc/ssl: no room']
  const { trust, told, kept } = setup(async () => ({ certificate: '/a.crt', problems }), {
    bundle: '/all',
  })
  assert.deepEqual(trust.variables(), { SSL_CERT_FILE: '/all', REQUESTS_CA_BUNDLE: '/all' })
  await trust.install('pem')
  assert.deepEqual(trust.variables(), { NODE_EXTRA_CA_CERTS: '/a.crt' })
  assert.deepEqual(kept.at(-1), { certificate: '/a.crt' })
  assert.match(told.join(), /no room/)
})

test('a file system that never answers holds one call, and nobody who waits', async () => {
  const answer = Promise.withResolvers<InstallResult>()
  let calls = 0
  const { trust, told } = setup(() => {
    calls += 1
    return answer.promise
  })
  const failed = { kind: 'internal', reason: 'trust_failed' }
  await Promise.all([
    assert.rejects(trust.install('one'), failed),
    assert.rejects(trust.install('two'), failed),
  ])
  assert.deepEqual([calls, told.length, trust.variables()], [1, 2, {}])
  answer.resolve({ certificate: '/a.crt', problems: [] })
  await answer.promise
  await trust.install('three')
  assert.deepEqual([calls, trust.variables()], [2, { NODE_EXTRA_CA_CERTS: '/a.crt' }])
})
