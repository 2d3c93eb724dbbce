import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { InstalledCa } from '../domain/trust/installed-ca.ts'
import { openCaTrust } from './ca-trust.ts'
import type { InstallResult } from './ca-trust.ts'

function setup(install: () => Promise<InstallResult>, before: InstalledCa = {}) {
  const logged: string[] = []
  const saved: InstalledCa[] = [before]
  const trust = openCaTrust({
    store: {
      load: () => before,
      save: async (installed) => void saved.push(installed),
    },
    install,
    log: { write: (_level, message) => logged.push(message) },
    timeoutMs: 20,
  })
  return { trust, logged, saved }
}

test('a CA bundle that could not be written is not in the variables', async () => {
  const problems = ['/etc/ssl: no room']
  const { trust, logged, saved } = setup(async () => ({ certificate: '/a.crt', problems }), {
    bundle: '/all',
  })
  assert.deepEqual(trust.variables(), { SSL_CERT_FILE: '/all', REQUESTS_CA_BUNDLE: '/all' })
  await trust.install('pem')
  assert.deepEqual(trust.variables(), { NODE_EXTRA_CA_CERTS: '/a.crt' })
  assert.deepEqual(saved.at(-1), { certificate: '/a.crt' })
  assert.match(logged.join(), /no room/)
})

test('a hung file system blocks one installation, and later ones time out', async () => {
  const answer = Promise.withResolvers<InstallResult>()
  let calls = 0
  const { trust, logged } = setup(() => {
    calls += 1
    return answer.promise
  })
  const failed = { kind: 'internal', reason: 'trust_failed' }
  await Promise.all([
    assert.rejects(trust.install('one'), failed),
    assert.rejects(trust.install('two'), failed),
  ])
  assert.deepEqual([calls, logged.length, trust.variables()], [1, 2, {}])
  answer.resolve({ certificate: '/a.crt', problems: [] })
  await answer.promise
  await trust.install('three')
  assert.deepEqual([calls, trust.variables()], [2, { NODE_EXTRA_CA_CERTS: '/a.crt' }])
})
