/**
 * Certificate authorities that one sandbox trusts and nobody else, and what they certify: that this process is the server
 * of a name.
 *
 * Threats: who has the key of an authority can pretend to be anybody towards its sandbox, so it never gets there. It
 * certifies no further authorities.
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

export interface Authority {
  /** PEM. */
  readonly certificate: string
  /** PEM, PKCS #8. */
  readonly key: string
}

export function createAuthority(now = new Date()): Authority {
  const { publicKey, privateKey } = createKeys()
  const until = new Date(now)
  until.setUTCFullYear(now.getUTCFullYear() + 10)
  const certificate = certificateOf({
    subject: authorityName,
    publicKey,
    issuerKey: privateKey,
    from: dayBefore(now),
    until,
    extensions: [
      extension(ids.basicConstraints, sequence(boolean(true), integer(Buffer.from([0]))), critical),
      extension(ids.keyUsage, bitString(Buffer.from([0x04]), 2), critical), // keyCertSign
      extension(ids.subjectKeyIdentifier, octetString(keyIdOf(publicKey))),
    ],
  })
  return { certificate, key: pemOf(privateKey) }
}

/** For a server of `name`. The key is the same for all. */
export function certify(
  authority: Authority,
  name: string,
  now = new Date(),
): { readonly certificate: string; readonly key: string } {
  leafKeys ??= createKeys()
  const { publicKey, privateKey } = leafKeys
  const issuerKey = createPrivateKey(authority.key)
  const certificate = certificateOf({
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
        sequence(implicit(0, keyIdOf(createPublicKey(issuerKey)))),
      ),
    ],
  })
  return { certificate, key: pemOf(privateKey) }
}

/** Sandboxes find the authority by a hash of this: it must not change. */
const authorityName = commonName('atoll sandbox egress')
/** Clients look at the alternative name only (RFC 6125, 6.4.4), and this one has no limit of 64 characters to keep. */
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

/** Clocks of clients may be slow. */
function dayBefore(now: Date): Date {
  return new Date(now.getTime() - dayMs)
}

interface Contents {
  readonly subject: Buffer
  readonly publicKey: KeyObject
  readonly issuerKey: KeyObject
  readonly from: Date
  readonly until: Date
  readonly extensions: readonly Buffer[]
}

/** RFC 5280, 4.1. */
function certificateOf(contents: Contents): string {
  const algorithm = sequence(objectId('1.2.840.10045.4.3.2')) // ecdsa-with-SHA256
  const signed = sequence(
    explicit(0, integer(Buffer.from([2]))), // version 3
    integer(serialNumber()),
    algorithm,
    authorityName,
    sequence(time(contents.from), time(contents.until)),
    contents.subject,
    contents.publicKey.export({ type: 'spki', format: 'der' }),
    explicit(3, sequence(...contents.extensions)),
  )
  const signature = sign('sha256', signed, contents.issuerKey)
  const base64 = sequence(signed, algorithm, bitString(signature)).toString('base64')
  const lines = base64.match(/.{1,64}/g) ?? []
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
}

/** Positive, and without zeros before it. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16)
  bytes.writeUInt8(0x40 | (bytes.readUInt8() & 0x3f))
  return bytes
}

function commonName(text: string): Buffer {
  return sequence(set(sequence(objectId('2.5.4.3'), utf8String(text))))
}

function extension(id: Buffer, value: Buffer, ...marks: readonly Buffer[]): Buffer {
  return sequence(id, ...marks, octetString(value))
}

/** RFC 5280, 4.2.1.2, method 1: of the point alone, which is the last of the key. */
function keyIdOf(publicKey: KeyObject): Buffer {
  const pointBytes = 65
  const point = publicKey.export({ type: 'spki', format: 'der' }).subarray(-pointBytes)
  return createHash('sha1').update(point).digest()
}

function pemOf(privateKey: KeyObject): string {
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}
