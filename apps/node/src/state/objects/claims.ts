import type { Condemned } from '@atoll/objects/condemned'

/** Claims of layers and builds of envd, before a bundle is uploaded that needs them. */
export type Claims = Pick<Condemned, 'claim'>

/** Short against the grace time, for which a claim holds: an upload that begins now may take the rest of it. */
const trustedMs = 60 * 60 * 1000

/** Remembers claims, so that uploads which follow each other ask the store once. `nowMs`: a clock that is never set. */
export function rememberClaims(condemned: Claims, nowMs: () => number): Claims {
  const claimed = new Map<string, number>()
  return {
    async claim(path, signal) {
      const now = nowMs()
      if (now - (claimed.get(path) ?? Number.NEGATIVE_INFINITY) < trustedMs) return true
      const isThere = await condemned.claim(path, signal)
      if (isThere) claimed.set(path, now)
      else claimed.delete(path)
      return isThere
    },
  }
}
