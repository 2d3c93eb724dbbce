import { X509Certificate } from 'node:crypto'
import { joinTokenPrefix } from '@atoll/contracts/fleet'
import type { Role } from '@atoll/contracts/fleet'
import { Fault } from '@atoll/kit/fault'

/**
 * A join token has the secret and the fingerprint of the fleet's authority: a part that joins knows by it whether the api
 * that answers belongs to the fleet, before it sends the secret.
 */
export interface JoinToken {
  readonly secret: string
  /** SHA-256 of the certificate of the authority, in lower-case hexadecimal digits. */
  readonly fingerprint: string
}

export type MemberRole = Extract<Role, 'edge' | 'node'>

export function formatToken({ secret, fingerprint }: JoinToken): string {
  return `${joinTokenPrefix}${secret}_${fingerprint}`
}

export function parseToken(text: string): JoinToken {
  const match = new RegExp(`^${joinTokenPrefix}([0-9a-f]{64})_([0-9a-f]{64})$`).exec(text.trim())
  const [, secret, fingerprint] = match ?? []
  if (secret !== undefined && fingerprint !== undefined) return { secret, fingerprint }
  throw new Fault(
    'invalid',
    'join_token',
    `A join token begins with ${joinTokenPrefix} and has 140 characters: copy the whole text that atoll node token printed`,
  )
}

/** Whether this is the token of a Kubernetes service account: a JSON web token. */
export function isAccountToken(text: string): boolean {
  return text.length <= maxAccountToken && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text)
}

const maxAccountToken = 16_384

export function fingerprintOf(certificate: X509Certificate): string {
  return certificate.fingerprint256.replaceAll(':', '').toLowerCase()
}
