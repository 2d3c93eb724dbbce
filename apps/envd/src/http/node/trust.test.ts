import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { collect } from '../../testing/process-calls.ts'
import { authority, otherAuthority } from '../../testing/certificates.ts'
import { accessToken, initToken, runEnvd } from '../../testing/running-envd.ts'
import type { RunningEnvd } from '../../testing/running-envd.ts'
import { envdVersion } from '../../version.ts'

const node = { 'x-init-token': initToken }
const others = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'

function trust(
  envd: RunningEnvd,
  body: unknown = { caBundle: authority },
  headers: Record<string, string> = node,
): Promise<Response> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return fetch(`${envd.url}/trust`, { method: 'POST', headers, body: text })
}

function places({ folder }: RunningEnvd) {
  const root = join(folder, 'root')
  const certificate = join(root, 'usr/local/share/ca-certificates/atoll-egress.crt')
  const bundle = join(root, 'etc/ssl/certs/ca-certificates.crt')
  return { root, certificate, bundle, read: () => readFile(certificate, 'utf8') }
}

async function putList(envd: RunningEnvd): Promise<void> {
  const { bundle } = places(envd)
  await mkdir(dirname(bundle), { recursive: true })
  await writeFile(bundle, others)
}

/** Returns the CA variables of a new process. */
async function variables(envd: RunningEnvd, envs: Record<string, string> = {}) {
  const { stdout } = await collect(envd.client.start({ process: { cmd: '/usr/bin/env', envs } }))
  const pairs = stdout.trim().split('\n')
  const mine = pairs
    .map((pair) => pair.split('='))
    .filter(([name = '']) => /CERT|BUNDLE/.test(name))
  return Object.fromEntries(mine)
}

function expected(envd: RunningEnvd) {
  const { certificate, bundle } = places(envd)
  return {
    NODE_EXTRA_CA_CERTS: certificate,
    REQUESTS_CA_BUNDLE: bundle,
    SSL_CERT_FILE: bundle,
  }
}

test('only the node may call /trust, before and after /init', async () => {
  await using envd = await runEnvd({ init: false })
  const strangers = [{}, { 'x-init-token': '' }, { 'x-init-token': 'wrong' }]
  const refuse = async () => {
    for (const headers of [...strangers, { 'x-access-token': accessToken }]) {
      const response = await trust(envd, undefined, headers)
      assert.equal(response.status, 401)
      assert.equal(response.headers.get('x-envd-version'), envdVersion)
    }
  }
  await refuse()
  await envd.init({ accessToken })
  await refuse()
  await assert.rejects(stat(places(envd).root), { code: 'ENOENT' })
  assert.equal((await trust(envd)).status, 204)
})

test('without a node secret, /trust rejects all requests', async () => {
  await using envd = await runEnvd({ init: false, initToken: undefined })
  for (const headers of [{}, { 'x-init-token': '' }, { 'x-init-token': 'undefined' }]) {
    assert.equal((await trust(envd, undefined, headers)).status, 401)
  }
})

test('/trust before /init does not open the sandbox, and the first process trusts the CA', async () => {
  await using envd = await runEnvd({ init: false })
  await putList(envd)
  assert.equal((await trust(envd)).status, 204)
  assert.equal(await places(envd).read(), authority)
  assert.equal((await fetch(`${envd.url}/envs`)).status, 503)
  await envd.init({ accessToken })
  assert.deepEqual(await variables(envd), expected(envd))
})

test('/trust changes no other setting, and a new CA replaces the old one', async () => {
  await using envd = await runEnvd()
  await envd.init({ accessToken, envVars: { A: '1' }, sandboxId: 'i1' })
  assert.equal((await trust(envd)).status, 204)
  assert.equal((await fetch(`${envd.url}/envs`)).status, 401)
  assert.equal((await trust(envd, { caBundle: otherAuthority, accessToken: 'x' })).status, 204)
  assert.equal(await places(envd).read(), otherAuthority)
  const response = await fetch(`${envd.url}/envs`, { headers: { 'x-access-token': accessToken } })
  assert.deepEqual(JSON.parse(await response.text()), {
    A: '1',
    E2B_SANDBOX: 'true',
    E2B_SANDBOX_ID: 'i1',
    NODE_EXTRA_CA_CERTS: places(envd).certificate,
  })
})

const bad = ['', '{', '[]', 'null', {}, { caBundle: null }, { caBundle: '' }, { caBundle: 'x' }]

test('an invalid CA is rejected and changes nothing', async () => {
  await using envd = await runEnvd()
  const huge = { caBundle: authority.repeat(1000) }
  for (const body of [...bad, huge]) assert.equal((await trust(envd, body)).status, 400)
  for (const caBundle of [7, '', 'x', authority.slice(0, 300), huge.caBundle]) {
    assert.equal((await envd.init({ accessToken: 'new', caBundle })).status, 400)
  }
  await assert.rejects(stat(places(envd).root), { code: 'ENOENT' })
  assert.deepEqual(await variables(envd), {})
  assert.deepEqual(envd.unexpectedErrors, [])
})

test('/init installs a CA, and without one keeps the current CA', async () => {
  await using envd = await runEnvd()
  await putList(envd)
  await envd.init({ accessToken, caBundle: authority })
  assert.equal(await places(envd).read(), authority)
  assert.deepEqual(await variables(envd), expected(envd))
  const before = await stat(places(envd).certificate)
  await envd.init({ accessToken })
  await envd.init({ accessToken, caBundle: null, sandboxId: 'i2' })
  assert.equal((await stat(places(envd).certificate)).ino, before.ino)
  assert.deepEqual(await variables(envd), expected(envd))
  await envd.init({ accessToken, caBundle: otherAuthority })
  assert.equal(await places(envd).read(), otherAuthority)
  const list = await readFile(places(envd).bundle, 'utf8')
  assert.ok(list.startsWith(others) && list.includes(otherAuthority) && !list.includes(authority))
})

test('an outdated /init does not restore an old CA', async () => {
  await using envd = await runEnvd()
  const timestamp = '2026-01-02T00:00:00Z'
  await envd.init({ accessToken, caBundle: authority, timestamp })
  const stale = { accessToken, caBundle: otherAuthority, timestamp: '2026-01-01T00:00:00Z' }
  assert.equal((await envd.init(stale)).status, 204)
  assert.equal(await places(envd).read(), authority)
})

test('envVars and requests override the CA variables', async () => {
  await using envd = await runEnvd()
  await putList(envd)
  await envd.init({ accessToken, caBundle: authority, envVars: { SSL_CERT_FILE: '/mine' } })
  assert.deepEqual(await variables(envd, { NODE_EXTRA_CA_CERTS: '' }), {
    ...expected(envd),
    SSL_CERT_FILE: '/mine',
    NODE_EXTRA_CA_CERTS: '',
  })
})

test('the CA variables survive a restart of envd, even before /init', async () => {
  const first = await runEnvd({ init: false })
  await putList(first)
  await trust(first)
  const second = await first.restart()
  assert.equal((await fetch(`${second.url}/envs`)).status, 503)
  await second.init({ accessToken })
  await using third = await second.restart()
  assert.deepEqual(await variables(third), expected(third))
})

test('a read-only system makes /trust fail but not /init, and logs why', async () => {
  await using envd = await runEnvd({ init: false })
  await writeFile(places(envd).root, 'not a folder')
  assert.equal((await trust(envd)).status, 500)
  const body = { accessToken, sandboxId: 'i1', caBundle: authority }
  assert.equal((await envd.init(body)).status, 204)
  assert.deepEqual(await variables(envd), {})
  const logs = await (await fetch(`${envd.url}/logs?after=0`, { headers: node })).text()
  assert.match(logs, /Failed to install the egress CA .*atoll-egress\.crt/)
  assert.deepEqual(envd.unexpectedErrors, [])
})

test('without a CA, no file is written', async () => {
  await using envd = await runEnvd()
  assert.deepEqual(await variables(envd), {})
  assert.deepEqual((await readdir(join(envd.folder, 'state'))).toSorted(), ['envd.json', 'fifos'])
  await assert.rejects(stat(places(envd).root), { code: 'ENOENT' })
})
