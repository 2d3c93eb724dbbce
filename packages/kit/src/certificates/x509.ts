/** Encodes and signs X.509 certificates (RFC 5280) with P-256 keys. Cannot decode: use `X509Certificate` of Node.js. */
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
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

export interface KeyPair {
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
}

export interface CertificateFields {
  /** Common names. */
  readonly subject: string
  readonly issuer: string
  readonly publicKey: KeyObject
  readonly issuerKey: KeyObject
  readonly from: Date
  readonly until: Date
  readonly extensions: readonly Buffer[]
}

export const dayMs = 86_400_000

export function createKeys(): KeyPair {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' })
}

export function toPem(privateKey: KeyObject): string {
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

/** Tolerates clients whose clocks are slow. */
export function dayBefore(now: Date): Date {
  return new Date(now.getTime() - dayMs)
}

/** Returns PEM. */
export function encodeCertificate(fields: CertificateFields): string {
  const algorithm = sequence(objectId('1.2.840.10045.4.3.2')) // ecdsa-with-SHA256
  const signed = sequence(
    explicit(0, integer(Buffer.from([2]))), // version 3
    integer(serialNumber()),
    algorithm,
    commonName(fields.issuer),
    sequence(time(fields.from), time(fields.until)),
    commonName(fields.subject),
    fields.publicKey.export({ type: 'spki', format: 'der' }),
    explicit(3, sequence(...fields.extensions)),
  )
  const signature = sign('sha256', signed, fields.issuerKey)
  const base64 = sequence(signed, algorithm, bitString(signature)).toString('base64')
  const lines = base64.match(/.{1,64}/g) ?? []
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
}

/** Extensions of a CA that may sign server certificates but no further CAs. */
export function authorityExtensions(publicKey: KeyObject): Buffer[] {
  return [
    extension('2.5.29.19', sequence(boolean(true), integer(Buffer.from([0]))), critical), // basicConstraints
    extension('2.5.29.15', bitString(Buffer.from([0x04]), 2), critical), // keyUsage: keyCertSign
    extension('2.5.29.14', octetString(keyIdentifier(publicKey))), // subjectKeyIdentifier
  ]
}

/** Restricts a CA to this domain and its subdomains (RFC 5280, 4.2.1.10). */
export function onlyForDomain(domain: string): Buffer {
  const subtree = sequence(implicit(2, Buffer.from(domain))) // dNSName
  return extension('2.5.29.30', sequence(explicit(0, subtree)), critical)
}

/** Extensions of a server certificate. `names` may begin with a wildcard label. */
export function serverExtensions(names: readonly string[], issuerKey: KeyObject): Buffer[] {
  const dnsNames = names.map((name) => implicit(2, Buffer.from(name)))
  return [
    extension('2.5.29.17', sequence(...dnsNames)), // subjectAltName
    extension('2.5.29.37', sequence(objectId('1.3.6.1.5.5.7.3.1'))), // extendedKeyUsage: serverAuth
    extension('2.5.29.15', bitString(Buffer.from([0x80]), 7), critical), // keyUsage: digitalSignature
    extension('2.5.29.35', sequence(implicit(0, keyIdentifier(issuerKey)))), // authorityKeyIdentifier
  ]
}

/** Extensions of a certificate for mutual TLS: its owner is a server to some peers and a client of others. */
export function peerExtensions(issuerKey: KeyObject): Buffer[] {
  const purposes = ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2'] // serverAuth, clientAuth
  return [
    extension('2.5.29.37', sequence(...purposes.map(objectId))), // extendedKeyUsage
    extension('2.5.29.15', bitString(Buffer.from([0x80]), 7), critical), // keyUsage: digitalSignature
    extension('2.5.29.35', sequence(implicit(0, keyIdentifier(issuerKey)))), // authorityKeyIdentifier
  ]
}

const critical = boolean(true)

function extension(id: string, value: Buffer, ...flags: readonly Buffer[]): Buffer {
  return sequence(objectId(id), ...flags, octetString(value))
}

function commonName(text: string): Buffer {
  return sequence(set(sequence(objectId('2.5.4.3'), utf8String(text))))
}

/** Returns 16 random bytes that encode a positive integer without leading zeros. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16)
  bytes.writeUInt8(0x40 | (bytes.readUInt8() & 0x3f))
  return bytes
}

/** Key identifier by method 1 of RFC 5280, 4.2.1.2: SHA-1 of the public point, the last 65 bytes of the encoded key. */
function keyIdentifier(publicKey: KeyObject): Buffer {
  const pointBytes = 65
  const point = publicKey.export({ type: 'spki', format: 'der' }).subarray(-pointBytes)
  return createHash('sha1').update(point).digest()
}
