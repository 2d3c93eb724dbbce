/**
 * Text that is encrypted with AES-256-GCM. A sealed text names its key, and opens only under the identity that it was
 * sealed for: a value that is moved to another record or field cannot be read.
 *
 *     atoll.sealed.v1.<key ID>.<nonce, ciphertext and tag in base64url>
 */
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createSecretKey,
  randomBytes,
} from 'node:crypto'
import type { KeyObject } from 'node:crypto'

export interface EncryptionKey {
  /** Derived from the key, so that a key has the same ID in every file. */
  readonly id: string
  readonly secret: KeyObject
}

export const keyBytes = 32
const prefix = 'atoll.sealed.v1.'
const pattern = /^atoll\.sealed\.v1\.([0-9a-f]{16})\.([A-Za-z0-9_-]+)$/
const algorithm = 'aes-256-gcm'
/** A random nonce of 96 bits is safe for about 2³² values per key. */
const nonceBytes = 12
const tagBytes = 16

export function toEncryptionKey(bytes: Uint8Array): EncryptionKey {
  const id = createHash('sha256').update('atoll key ID\n').update(bytes).digest('hex').slice(0, 16)
  return { id, secret: createSecretKey(bytes) }
}

export function isSealed(text: string): boolean {
  return text.startsWith(prefix)
}

/** Start of every text that is sealed with this key. */
function sealedPrefix(keyId: string): string {
  return `${prefix}${keyId}.`
}

/** Returns undefined when the text is not sealed, or damaged beyond its name. */
export function keyIdOf(sealed: string): string | undefined {
  return pattern.exec(sealed)?.[1]
}

/** `identity` names the record and the field, such as `secret:sec_1`. */
export function sealText(key: EncryptionKey, plain: string, identity: string): string {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv(algorithm, key.secret, nonce, { authTagLength: tagBytes })
  cipher.setAAD(Buffer.from(identity))
  const parts = [nonce, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()]
  return `${sealedPrefix(key.id)}${Buffer.concat(parts).toString('base64url')}`
}

/** Returns undefined when the text was changed, or sealed with another key or for another identity. */
export function openText(key: EncryptionKey, sealed: string, identity: string): string | undefined {
  const bytes = Buffer.from(pattern.exec(sealed)?.[2] ?? '', 'base64url')
  if (bytes.length < nonceBytes + tagBytes) return undefined
  const nonce = bytes.subarray(0, nonceBytes)
  const decipher = createDecipheriv(algorithm, key.secret, nonce, { authTagLength: tagBytes })
  decipher.setAAD(Buffer.from(identity))
  decipher.setAuthTag(bytes.subarray(-tagBytes))
  try {
    const content = decipher.update(bytes.subarray(nonceBytes, -tagBytes))
    return Buffer.concat([content, decipher.final()]).toString('utf8')
  } catch {
    return undefined
  }
}
