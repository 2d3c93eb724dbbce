import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import {
  createKeys,
  dayMs,
  encodeCertificate,
  serverExtensions,
} from '@atoll/kit/certificates/x509'
import { run, tryRun } from '@atoll/kit/run'
import { createPrivateKey, createPublicKey } from 'node:crypto'
import { createLocalCa, issueServerCertificate, localCaFiles } from './local-ca.ts'
import { localCertificates } from './local-certificates.ts'
import { setUpLocalCa } from './set-up-local-ca.ts'

async function setup(t: TestContext, domain = 'atoll.localhost:8443') {
  const dataDir = await mkdtemp(join(tmpdir(), 'atoll-local-ca-'))
  t.after(() => rm(dataDir, { recursive: true, force: true }))
  const env = { ATOLL_DATA_DIR: dataDir, ATOLL_DOMAIN: domain }
  return { dataDir, env, files: localCaFiles(dataDir) }
}

const modeOf = async (path: string) => (await stat(path)).mode & 0o777

test('a set-up creates a CA and a certificate for the domain and the names below it', async (t) => {
  const { env, files } = await setup(t)
  const { isNew, hostName, certificateFile } = await setUpLocalCa(env, { replace: false })
  assert.deepEqual([isNew, hostName, certificateFile], [true, 'atoll.localhost', files.certificate])
  const ca = new X509Certificate(await readFile(files.certificate))
  const server = new X509Certificate(await readFile(files.server))
  assert.ok(ca.ca && server.verify(ca.publicKey) && server.checkIssued(ca))
  const names = ['atoll.localhost', 'api.atoll.localhost', '8000-abc.atoll.localhost']
  assert.deepEqual(
    names.map((name) => server.checkHost(name) !== undefined),
    [true, true, true],
  )
  assert.deepEqual(
    ['localhost', 'a.b.atoll.localhost'].map((name) => server.checkHost(name)),
    [undefined, undefined],
  )
  assert.deepEqual(
    await Promise.all([files.authority, files.server, files.certificate].map(modeOf)),
    [0o600, 0o600, 0o644],
  )
})

test('a second set-up changes nothing, and repairs the copy of the certificate', async (t) => {
  const { env, files } = await setup(t)
  await setUpLocalCa(env, { replace: false })
  const before = [await readFile(files.authority, 'utf8'), await readFile(files.server, 'utf8')]
  const certificate = await readFile(files.certificate, 'utf8')
  await rm(files.certificate)
  assert.equal((await setUpLocalCa(env, { replace: false })).isNew, false)
  const after = [await readFile(files.authority, 'utf8'), await readFile(files.server, 'utf8')]
  assert.deepEqual([...after, await readFile(files.certificate, 'utf8')], [...before, certificate])
})

test('a CA for another domain or a damaged one is replaced only on demand', async (t) => {
  const { env, files } = await setup(t)
  await setUpLocalCa(env, { replace: false })
  const other = { ...env, ATOLL_DOMAIN: 'other.localhost' }
  await assert.rejects(
    setUpLocalCa(other, { replace: false }),
    /CA for atoll\.localhost.*--replace/,
  )
  assert.equal((await setUpLocalCa(other, { replace: true })).isNew, true)
  await writeFile(files.authority, '{')
  await assert.rejects(setUpLocalCa(other, { replace: false }), /damaged.*--replace/)
  assert.equal((await setUpLocalCa(other, { replace: true })).isNew, true)
})

for (const [domain, message] of [
  ['', /must be a host name/],
  ['localhost:3000', /must have a dot/],
  ['10.0.0.1', /must have a dot/],
] as const) {
  test(`a local CA for "${domain}" is refused`, async (t) => {
    const { env, files } = await setup(t, domain)
    await assert.rejects(setUpLocalCa(env, { replace: false }), message)
    await assert.rejects(stat(files.authority), { code: 'ENOENT' })
  })
}

test('the certificate is kept over restarts and renewed 30 days before its end', async (t) => {
  const { dataDir, env } = await setup(t)
  const start = new Date('2026-03-04T05:06:07Z')
  await setUpLocalCa(env, { replace: false, now: start })
  let now = start
  const load = () => localCertificates(dataDir, 'atoll.localhost', { now: () => now }).load()
  const first = await load()
  now = new Date(start.getTime() + 59 * dayMs)
  assert.deepEqual(await load(), first)
  now = new Date(start.getTime() + 61 * dayMs)
  const second = await load()
  assert.notEqual(second.cert, first.cert)
  assert.deepEqual(await load(), second)
  assert.equal(new X509Certificate(second.cert).validToDate.getTime(), now.getTime() + 90 * dayMs)
})

test('no certificate outlives its CA', () => {
  const ca = createLocalCa('atoll.localhost', new Date('2026-03-04T00:00:00Z'))
  const { cert } = issueServerCertificate(ca, new Date('2036-02-25T00:00:00Z'))
  assert.deepEqual(
    new X509Certificate(cert).validToDate,
    new X509Certificate(ca.certificate).validToDate,
  )
})

test('a new CA is used without a restart, but a CA for another domain is not', async (t) => {
  const { dataDir, env, files } = await setup(t)
  await setUpLocalCa(env, { replace: false })
  const source = localCertificates(dataDir, 'atoll.localhost')
  const first = await source.load()
  await setUpLocalCa(env, { replace: true })
  const second = await source.load()
  assert.notEqual(second.cert, first.cert)
  const ca = new X509Certificate(await readFile(files.certificate))
  assert.ok(new X509Certificate(second.cert).verify(ca.publicKey))
  await setUpLocalCa({ ...env, ATOLL_DOMAIN: 'other.localhost' }, { replace: true })
  await assert.rejects(source.load(), /for the domain other\.localhost/)
  await rm(files.authority)
  await assert.rejects(source.load(), /atoll tls local/)
})

test('OpenSSL accepts the certificate, and rejects certificates of the CA for other domains', async (t) => {
  const { dataDir, env, files } = await setup(t)
  await setUpLocalCa(env, { replace: false })
  const verify = (name: string, file: string) =>
    tryRun('openssl', [
      ...['verify', '-x509_strict', '-purpose', 'sslserver', '-verify_hostname', name],
      ...['-no-CApath', '-CAfile', files.certificate, file],
    ])
  const good = await verify('8000-abc.atoll.localhost', files.server)
  assert.equal(good.stdout.trim(), `${files.server}: OK`, good.stderr)

  const ca = JSON.parse(await readFile(files.authority, 'utf8'))
  const issuerKey = createPrivateKey(ca.key)
  const stolen = join(dataDir, 'stolen.pem')
  await writeFile(
    stolen,
    encodeCertificate({
      subject: 'Atoll',
      issuer: 'Atoll local CA for atoll.localhost',
      publicKey: createKeys().publicKey,
      issuerKey,
      from: new Date(Date.now() - dayMs),
      until: new Date(Date.now() + dayMs),
      extensions: serverExtensions(['bank.example'], createPublicKey(issuerKey)),
    }),
  )
  const bad = await verify('bank.example', stolen)
  assert.match(bad.stderr, /permitted subtree violation/)
  const text = await run('openssl', ['x509', '-in', files.certificate, '-noout', '-text'])
  assert.match(text, /Name Constraints: critical\n\s+Permitted:\n\s+DNS:atoll\.localhost\n/)
})
