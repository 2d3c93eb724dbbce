/**
 * Signed URLs: the holder of the access token grants others read or write access to one path, with an optional
 * expiry.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { Fault } from '@atoll/kit/fault'

export interface SignedRequest {
  /** Raw query values, not resolved; empty when absent. */
  readonly path: string
  readonly username: string
  readonly operation: 'read' | 'write'
  readonly signature: string | undefined
  /** Unix time in seconds. If absent, the URL never expires. */
  readonly expiration: number | undefined
}

/**
 * Throws an `unauthenticated` fault. Checks the signature before the expiry, which is trusted only if it is signed.
 */
export function checkSignature(request: SignedRequest, accessToken: string, now: Date): void {
  const { signature, expiration } = request
  if (signature === undefined) {
    refuse('No access token. Send it in the header X-Access-Token, or sign the URL (signature=…).')
  }
  const expected = Buffer.from(sign(request, accessToken))
  const given = Buffer.from(signature)
  if (expected.length !== given.length || !timingSafeEqual(expected, given)) {
    refuse(
      'The signature does not match the path, username, operation and expiration of this request',
    )
  }
  if (expiration !== undefined && expiration < Math.floor(now.getTime() / 1000)) {
    refuse('signature is already expired') // exact text that clients match
  }
}

function sign(request: SignedRequest, accessToken: string): string {
  const { path, operation, username, expiration } = request
  const parts = [path, operation, username, accessToken]
  if (expiration !== undefined) parts.push(String(expiration))
  const digest = createHash('sha256').update(parts.join(':')).digest('base64')
  return `v1_${digest.replace(/=+$/, '')}`
}

function refuse(message: string): never {
  throw new Fault('unauthenticated', 'bad_signature', message)
}
