import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { createLogger } from '@atoll/kit/log'
import { waitFor } from '@atoll/kit/wait'
import { certificateFiles } from './certificate-files.ts'
import { openCertificates } from './certificates.ts'
import type { CertificateSource } from './certificates.ts'
import { checkCertificate } from './check-certificate.ts'
import type { CertificatePair } from './check-certificate.ts'
import { createLocalCa, issueServerCertificate } from './local-ca.ts'

const domain = 'atoll.test'
const now = new Date()
const ca = createLocalCa(domain, now)
const issue = (at = now) => issueServerCertificate(ca, at)
const expired = issue(new Date(now.getTime() - 100 * 86_400_000))
const other = issueServerCertificate(createLocalCa('other.test', now), now)

async function setup(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-certificates-'))
  t.after(() => rm(dir, { recursive: true, force: true }))
  const [certFile, keyFile] = [join(dir, 'cert.pem'), join(dir, 'key.pem')]
  const write = async ({ cert, key }: CertificatePair) => {
    await writeFile(certFile, cert)
    await writeFile(keyFile, key)
  }
  let logged = ''
  const log = createLogger('info', { write: (line: string) => void (logged += line) })
  const openSource = async (source: CertificateSource) => {
    const certificates = await openCertificates(source, { domain, log, intervalMs: 5 })
    t.after(() => certificates.close())
    return certificates
  }
  const open = () => openSource(certificateFiles(certFile, keyFile))
  return { keyFile, write, open, openSource, logged: () => logged }
}

test('new files are used without a restart', async (t) => {
  const { write, open, logged } = await setup(t)
  const [first, second] = [issue(), issue()]
  await write(first)
  const certificates = await open()
  const seen: string[] = []
  certificates.onChange(({ cert }) => void seen.push(cert))
  assert.deepEqual(certificates.current(), first)
  await write(second)
  await waitFor('the new certificate', () => certificates.current().cert === second.cert)
  assert.deepEqual(seen, [second.cert])
  assert.match(logged(), /tls\.new_certificate/)
})

for (const [what, bad, reason] of [
  ['of another key', { ...issue(), key: issue().key }, /the key does not belong/],
  ['that are no PEM', { cert: 'nothing', key: 'nothing' }, /not in PEM format/],
  ['that have expired', expired, /expired on 20/],
  ['for another domain', other, /not valid for api\.atoll\.test; it needs \*\.atoll\.test/],
] as const) {
  test(`a new certificate and key ${what} are not used, and the reason is logged once`, async (t) => {
    const { openSource, logged } = await setup(t)
    const good = issue()
    let offered: CertificatePair = good
    let loads = 0
    const load = async () => ((loads += 1), offered)
    const certificates = await openSource({ description: 'a pair', load })
    offered = bad
    await waitFor('the reason', () => reason.test(logged()))
    const before = loads
    await waitFor('more attempts', () => loads > before + 2)
    assert.deepEqual(certificates.current(), good)
    assert.equal(logged().match(new RegExp(reason, 'g'))?.length, 1)
    offered = issue()
    await waitFor('the next certificate', () => certificates.current() === offered)
    assert.ok(!logged().includes('PRIVATE KEY'))
  })
}

test('a file that is gone does not end HTTPS', async (t) => {
  const { write, open, logged, keyFile } = await setup(t)
  const good = issue()
  await write(good)
  const certificates = await open()
  await rm(keyFile)
  await waitFor('the reason', () => /cannot read .*key\.pem \(ENOENT\)/.test(logged()))
  assert.deepEqual(certificates.current(), good)
})

test('a start without a usable certificate fails with the reason', async (t) => {
  const { write, open } = await setup(t)
  await assert.rejects(open(), /HTTPS cannot start with .*cert\.pem.*: cannot read/)
  await write({ ...issue(), key: issue().key })
  await assert.rejects(open(), { reason: 'unusable_certificate', message: /does not belong/ })
})

test('a start with an expired certificate works and is logged', async (t) => {
  const { write, open, logged } = await setup(t)
  await write(expired)
  assert.deepEqual((await open()).current(), expired)
  assert.match(logged(), /tls\.bad_certificate/)
})

test('a certificate that is not valid yet is refused', () => {
  const early = new Date(now.getTime() - 30 * 86_400_000)
  const { refusedBecause = '' } = checkCertificate(issue(), domain, early)
  assert.match(refusedBecause, /valid only from/)
})

test('an encrypted key is refused', () => {
  const key = '-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n'
  const { unusableBecause = '' } = checkCertificate({ ...issue(), key }, domain, now)
  assert.match(unusableBecause, /encrypted/)
})
