import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Clock } from '@atoll/kit/clock'

/** A link that signs in once, for the person who sees the server's terminal. */
export interface SignInLink {
  readonly token: string
  /** True once, if the token is right and in time. */
  redeem(token: string): boolean
}

const validMs = 60 * 60 * 1_000

export function createSignInLink(clock: Clock): SignInLink {
  const token = randomBytes(32).toString('base64url')
  const expected = digest(token)
  const expiresAt = clock.now().getTime() + validMs
  let isUsed = false
  return {
    token,
    redeem(given) {
      const isRight = timingSafeEqual(digest(given), expected)
      if (!isRight || isUsed || clock.now().getTime() > expiresAt) return false
      isUsed = true
      return true
    },
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
