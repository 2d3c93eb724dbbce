import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadServerConfig } from './config.ts'
import { setUpLocalCa } from './tls/set-up-local-ca.ts'
import { planTls } from './tls/tls-plan.ts'

const acme = {
  ATOLL_DOMAIN: 'a.test',
  ATOLL_ACME_DIRECTORY: 'https://ca.test/dir',
  ATOLL_ACME_TERMS: 'agreed',
}
const files = { ATOLL_TLS_CERT_FILE: '/etc/a.pem', ATOLL_TLS_KEY_FILE: '/etc/b.pem' }

for (const [env, message] of [
  [{ ...files }, /HTTPS needs a domain/],
  [{ ATOLL_TLS_LISTEN: '0.0.0.0:443' }, /HTTPS needs a domain/],
  [{ ATOLL_DOMAIN: 'a.test', ATOLL_TLS_CERT_FILE: '/etc/a.pem' }, /need each other/],
  [{ ATOLL_DOMAIN: 'a.test', ATOLL_TLS_KEY_FILE: '/etc/b.pem' }, /need each other/],
  [{ ...files, ATOLL_DOMAIN: 'a.test', ATOLL_TLS_KEY_FILE: 'b.pem' }, /absolute path/],
  [{ ATOLL_TRUSTED_PROXIES: '10.0.0.0/8,proxy' }, /"proxy" must be an address or a network/],
  [{ ATOLL_DOMAIN: 'a.test:1', ATOLL_DASHBOARD_HOST: 'api.a.test' }, /serves the API/],
  [{ ATOLL_DOMAIN: 'https://a.test' }, /must be a host name/],
  [{ ATOLL_HTTP_LISTEN: '0.0.0.0:80' }, /HTTPS needs a domain/],
  [{ ATOLL_ACME_HOOK: '/etc/hook' }, /ATOLL_ACME_HOOK needs ATOLL_ACME_DIRECTORY/],
  [{ ...acme }, /needs ATOLL_ACME_HOOK for a wildcard certificate, or ATOLL_HTTP_LISTEN/],
  [{ ...acme, ATOLL_ACME_TERMS: undefined }, /needs ATOLL_ACME_TERMS=agreed/],
  [{ ...acme, ATOLL_ACME_TERMS: 'no' }, /must be agreed/],
  [{ ...acme, ATOLL_ACME_DIRECTORY: 'http://ca.test' }, /must be an https:/],
  [{ ...acme, ATOLL_ACME_HOOK: 'hook' }, /absolute path/],
  [{ ...acme, ATOLL_ACME_HOOK: '/h', ATOLL_DOMAIN: 'localhost:1' }, /a domain with a dot/],
  [{ ...acme, ...files, ATOLL_ACME_HOOK: '/h' }, /exclude each other/],
] as const) {
  test(`${JSON.stringify(env)} is refused`, () => {
    assert.throws(() => loadServerConfig(env), { reason: 'configuration_refused', message })
  })
}

test('with a hook the certificate is for all names, without one for API, sandboxes by header and dashboard', async () => {
  const namesOf = async (env: Record<string, string>) =>
    (await planTls(loadServerConfig({ ...acme, ...env }).server))?.source.hostNames
  const listen = { ATOLL_HTTP_LISTEN: '0.0.0.0:80' }
  assert.deepEqual(await namesOf({ ATOLL_ACME_HOOK: '/etc/hook' }), ['*.a.test'])
  const names = ['api.a.test', 'sandbox.a.test']
  assert.deepEqual(await namesOf(listen), [...names, 'ui.a.test'])
  for (const [host, more] of [
    ['off', []],
    ['my.a.test', ['my.a.test']],
    ['ui.example.com', []],
  ] as const) {
    const seen = await namesOf({ ...listen, ATOLL_DASHBOARD_HOST: host })
    assert.deepEqual(seen, [...names, ...more])
  }
})

test('HTTPS is off without a certificate and on with files or a local CA', async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'atoll-config-'))
  t.after(() => rm(dataDir, { recursive: true }))
  const planOf = (env: Record<string, string>) =>
    planTls(loadServerConfig({ ATOLL_DATA_DIR: dataDir, ...env }).server)
  assert.equal(await planOf({}), undefined)
  assert.equal(await planOf({ ATOLL_DOMAIN: 'a.test' }), undefined)

  const byFiles = await planOf({ ...files, ATOLL_DOMAIN: 'A.test' })
  assert.deepEqual(
    [byFiles?.domain, byFiles?.listen, byFiles?.isLocalCa],
    ['a.test', { host: '127.0.0.1', port: 443 }, false],
  )
  const domain = { ATOLL_DOMAIN: 'a.test:8443' }
  await setUpLocalCa({ ATOLL_DATA_DIR: dataDir, ...domain }, { replace: false })
  const local = await planOf(domain)
  assert.deepEqual(
    [local?.domain, local?.hostName, local?.listen, local?.isLocalCa],
    ['a.test:8443', 'a.test', { host: '127.0.0.1', port: 8443 }, true],
  )
  const elsewhere = await planOf({ ...domain, ATOLL_TLS_LISTEN: '0.0.0.0:443' })
  assert.deepEqual(elsewhere?.listen, { host: '0.0.0.0', port: 443 })
  assert.equal(await planOf({}), undefined)
})
