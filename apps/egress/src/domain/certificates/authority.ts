/**
 * Per-sandbox certificate authorities, and the server certificates that they issue to the egress proxy.
 *
 * Threats: anyone who has the key of a CA can impersonate any server towards its sandbox, so the key never enters the
 * sandbox. The CA cannot issue certificates for other CAs.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
} from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import type { Authority } from '@atoll/contracts/network/rules'
import {
  bitString,
  boolean,
  explicit,
  implicit,
  integer,
  objectId,
  octetString,
  sequence,
  set,
  time,
  utf8String,
} from './der.ts'

export function createAuthority(now = new Date()): Authority {
  const { publicKey, privateKey } = createKeys()
  const until = new Date(now)
  until.setUTCFullYear(now.getUTCFullYear() + 10)
  const certificate = encodeCertificate({
    subject: authorityName,
    publicKey,
    issuerKey: privateKey,
    from: dayBefore(now),
    until,
    extensions: [
      extension(ids.basicConstraints, sequence(boolean(true), integer(Buffer.from([0]))), critical),
      extension(ids.keyUsage, bitString(Buffer.from([0x04]), 2), critical), // keyCertSign
      extension(ids.subjectKeyIdentifier, octetString(keyIdentifier(publicKey))),
    ],
  })
  return { certificate, key: toPem(privateKey) }
}

/** Issues a certificate for a server called `name`. All certificates share one key pair. */
export function issueCertificate(
  authority: Authority,
  name: string,
  now = new Date(),
): { readonly certificate: string; readonly key: string } {
  leafKeys ??= createKeys()
  const { publicKey, privateKey } = leafKeys
  const issuerKey = createPrivateKey(authority.key)
  const certificate = encodeCertificate({
    subject: leafName,
    publicKey,
    issuerKey,
    from: dayBefore(now),
    until: new Date(now.getTime() + 365 * dayMs),
    extensions: [
      extension(ids.subjectAltName, sequence(implicit(2, Buffer.from(name)))), // dNSName
      extension(ids.extendedKeyUsage, sequence(objectId('1.3.6.1.5.5.7.3.1'))), // serverAuth
      extension(ids.keyUsage, bitString(Buffer.from([0x80]), 7), critical), // digitalSignature
      extension(
        ids.authorityKeyIdentifier,
        sequence(implicit(0, keyIdentifier(createPublicKey(issuerKey)))),
      ),
    ],
  })
  return { certificate, key: toPem(privateKey) }
}

/** Sandboxes look up the CA by a hash of this name, so it must not change. */
const authorityName = commonName('atoll sandbox egress')
/**
 * Clients check only the subject alternative name (RFC 6125, 6.4.4), which may exceed the 64 characters of a common
 * name.
 */
const leafName = commonName('atoll sandbox egress server')
const dayMs = 86_400_000
const critical = boolean(true)
const ids = {
  subjectKeyIdentifier: objectId('2.5.29.14'),
  keyUsage: objectId('2.5.29.15'),
  subjectAltName: objectId('2.5.29.17'),
  basicConstraints: objectId('2.5.29.19'),
  authorityKeyIdentifier: objectId('2.5.29.35'),
  extendedKeyUsage: objectId('2.5.29.37'),
}

interface Keys {
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
}

let leafKeys: Keys | undefined

function createKeys(): Keys {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' })
}

/** Tolerates clients whose clocks are slow. */
function dayBefore(now: Date): Date {
  return new Date(now.getTime() - dayMs)
}

interface CertificateFields {
  readonly subject: Buffer
  readonly publicKey: KeyObject
  readonly issuerKey: KeyObject
  readonly from: Date
  readonly until: Date
  readonly extensions: readonly Buffer[]
}

/** Encodes and signs an X.509 certificate (RFC 5280, 4.1) as PEM. */
function encodeCertificate(fields: CertificateFields): string {
  const algorithm = sequence(objectId('1.2.840.10045.4.3.2')) // ecdsa-with-SHA256
  const signed = sequence(
    explicit(0, integer(Buffer.from([2]))), // version 3
    integer(serialNumber()),
    algorithm,
    authorityName,
    sequence(time(fields.from), time(fields.until)),
    fields.subject,
    fields.publicKey.export({ type: 'spki', format: 'der' }),
    explicit(3, sequence(...fields.extensions)),
  )
  const signature = sign('sha256', signed, fields.issuerKey)
  const base64 = sequence(signed, algorithm, bitString(signature)).toString('base64')
  const lines = base64.match(/.{1,64}/g) ?? []
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
}

/** Returns 16 random bytes that encode a positive integer without leading zeros. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16)
  bytes.writeUInt8(0x40 | (bytes.readUInt8() & 0x3f))
  return bytes
}

function commonName(text: string): Buffer {
  return sequence(set(sequence(objectId('2.5.4.3'), utf8String(text))))
}

function extension(id: Buffer, value: Buffer, ...flags: readonly Buffer[]): Buffer {
  return sequence(id, ...flags, octetString(value))
}

/** Key identifier by method 1 of RFC 5280, 4.2.1.2: SHA-1 of the public point, the last 65 bytes of the encoded key. */
function keyIdentifier(publicKey: KeyObject): Buffer {
  const pointBytes = 65
  const point = publicKey.export({ type: 'spki', format: 'der' }).subarray(-pointBytes)
  return createHash('sha1').update(point).digest()
}

function toPem(privateKey: KeyObject): string {
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}
