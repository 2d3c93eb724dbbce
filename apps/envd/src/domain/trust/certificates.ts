import { X509Certificate } from 'node:crypto'
import { Fault } from '@atoll/kit/fault'

/** Parses and re-encodes one or more PEM certificates (RFC 7468). Text between them is dropped. */
export function parseCertificates(value: unknown): string {
  if (typeof value !== 'string') throwInvalid('must be a string')
  if (Buffer.byteLength(value) > limitBytes)
    throwInvalid(`exceeds the limit of ${limitBytes} bytes`)
  const blocks = blocksOf(value)
  if (blocks.length === 0) throwInvalid('contains no certificate')
  if (value.replaceAll(block, '').includes('-----'))
    throwInvalid('contains something other than certificates')
  return blocks.map(normalize).join('')
}

/** Removes the certificates in `unwanted` from `text`, in one pass. */
export function removeCertificates(text: string, unwanted: string): string {
  const left = new Set(blocksOf(unwanted).map((each) => each.trim()))
  return text.replaceAll(block, (each) => (left.has(each.trim()) ? '' : each))
}

function blocksOf(text: string): readonly string[] {
  return text.match(block) ?? []
}

const block = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]*-----END CERTIFICATE-----\r?\n?/g
const limitBytes = 64 * 1024

function normalize(pem: string): string {
  try {
    return new X509Certificate(pem).toString()
  } catch (cause) {
    return throwInvalid('contains an invalid certificate', cause)
  }
}

function throwInvalid(message: string, cause?: unknown): never {
  throw new Fault('invalid', 'bad_ca_bundle', `caBundle ${message}`, { cause })
}
