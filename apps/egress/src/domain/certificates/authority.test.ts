import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { connect, createServer } from 'node:tls'
import { run } from '@atoll/kit/run'
import { issueCertificate, createAuthority } from './authority.ts'

const now = new Date('2026-03-04T05:06:07.890Z')
const authority = createAuthority(now)
const name = 'api.example.com'

test('a CA may sign server certificates but no further CAs', () => {
  const certificate = new X509Certificate(authority.certificate)
  assert.equal(certificate.ca, true)
  assert.equal(certificate.subject, 'CN=atoll sandbox egress')
  assert.equal(certificate.verify(certificate.publicKey), true)
  assert.deepEqual(
    [certificate.validFromDate, certificate.validToDate],
    [new Date('2026-03-03T05:06:07Z'), new Date('2036-03-04T05:06:07Z')],
  )
})

test('a certificate is valid for its name and signed by its own CA only', () => {
  const issuer = new X509Certificate(authority.certificate)
  const leaf = new X509Certificate(issueCertificate(authority, name, now).certificate)
  assert.equal(leaf.ca, false)
  assert.equal(leaf.checkIssued(issuer), true)
  assert.equal(leaf.verify(issuer.publicKey), true)
  assert.equal(leaf.verify(new X509Certificate(createAuthority().certificate).publicKey), false)
  assert.deepEqual(
    [name, 'example.com', 'a.api.example.com'].map((host) => leaf.checkHost(host)),
    [name, undefined, undefined],
  )
  assert.deepEqual(
    [leaf.validFromDate, leaf.validToDate],
    [new Date('2026-03-03T05:06:07Z'), new Date('2027-03-04T05:06:07Z')],
  )
})

test('serial numbers are unique', () => {
  const serials = Array.from({ length: 50 }, () => {
    const { serialNumber } = new X509Certificate(issueCertificate(authority, name).certificate)
    assert.match(serialNumber, /^[4-7][0-9A-F]{31}$/)
    return serialNumber
  })
  assert.equal(new Set(serials).size, 50)
})

test('validity dates from 2050 on are encoded with four-digit years', () => {
  const late = new Date('2045-01-01T00:00:00Z')
  const { validFromDate, validToDate } = new X509Certificate(createAuthority(late).certificate)
  assert.deepEqual(
    [validFromDate, validToDate],
    [new Date('2044-12-31T00:00:00Z'), new Date('2055-01-01T00:00:00Z')],
  )
})

test('a certificate can hold the longest possible DNS name', () => {
  const long = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`
  const leaf = new X509Certificate(issueCertificate(authority, long).certificate)
  assert.equal(leaf.checkHost(long), long)
})

test('OpenSSL verifies the certificates', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-authority-'))
  try {
    const [caFile, leafFile] = [join(dir, 'ca.pem'), join(dir, 'leaf.pem')]
    const current = createAuthority()
    await writeFile(caFile, current.certificate)
    await writeFile(leafFile, issueCertificate(current, name).certificate)
    const openssl = async (...args: string[]) => (await run('openssl', args)).trim()

    // OpenSSL in a sandbox finds the certificate by a link with this fixed name.
    assert.equal(await openssl('x509', '-in', caFile, '-noout', '-hash'), '2d824785')
    assert.equal(
      await openssl(
        ...['verify', '-x509_strict', '-purpose', 'sslserver', '-verify_hostname', name],
        ...['-no-CApath', '-CAfile', caFile, leafFile],
      ),
      `${leafFile}: OK`,
    )
    const caText = await openssl('x509', '-in', caFile, '-noout', '-text')
    for (const part of [
      /X509v3 Basic Constraints: critical\n\s+CA:TRUE, pathlen:0\n/,
      /X509v3 Key Usage: critical\n\s+Certificate Sign\n/,
      /X509v3 Subject Key Identifier: ?\n/,
      /Signature Algorithm: ecdsa-with-SHA256/,
      /NIST CURVE: P-256/,
    ]) {
      assert.match(caText, part)
    }
    const leafText = await openssl('x509', '-in', leafFile, '-noout', '-text')
    for (const part of [
      /X509v3 Subject Alternative Name: ?\n\s+DNS:api\.example\.com\n/,
      /X509v3 Extended Key Usage: ?\n\s+TLS Web Server Authentication\n/,
      /X509v3 Key Usage: critical\n\s+Digital Signature\n/,
      /X509v3 Authority Key Identifier: ?\n/,
    ]) {
      assert.match(leafText, part)
    }
  } finally {
    await rm(dir, { recursive: true })
  }
})

test('a TLS client connects only if it trusts the CA', async () => {
  const current = createAuthority()
  const { certificate, key } = issueCertificate(current, name)
  const server = createServer({ cert: certificate, key }, (socket) => socket.end('hello'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  const options = { host: '127.0.0.1', port, servername: name }
  try {
    const client = connect({ ...options, ca: current.certificate })
    const [received]: Buffer[] = await once(client, 'data')
    assert.equal(received?.toString(), 'hello')
    client.destroy()
    const distrusting = connect({ ...options, ca: createAuthority().certificate })
    await assert.rejects(once(distrusting, 'secureConnect'), /certificate/)
  } finally {
    server.close()
  }
})
