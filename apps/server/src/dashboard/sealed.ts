/** Keeps a credential encrypted under a token that only the browser has. */
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'

export function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('base64url')
}

const cipher = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

function sealingKey(token: string): Buffer {
  return Buffer.from(hkdfSync('sha256', token, '', 'atoll dashboard session', 32))
}

export function seal(text: string, token: string): string {
  const nonce = randomBytes(nonceBytes)
  const sealing = createCipheriv(cipher, sealingKey(token), nonce)
  const body = Buffer.concat([sealing.update(text, 'utf8'), sealing.final()])
  return Buffer.concat([nonce, sealing.getAuthTag(), body]).toString('base64url')
}

/** Returns undefined for a damaged record. */
export function unseal(sealed: string, token: string): string | undefined {
  try {
    const bytes = Buffer.from(sealed, 'base64url')
    const opening = createDecipheriv(cipher, sealingKey(token), bytes.subarray(0, nonceBytes))
    opening.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes))
    const body = bytes.subarray(nonceBytes + tagBytes)
    return Buffer.concat([opening.update(body), opening.final()]).toString('utf8')
  } catch {
    return undefined
  }
}
