import { X509Certificate } from 'node:crypto'
import { roles } from '@atoll/contracts/fleet'
import { createKeys, toPem } from '@atoll/kit/certificates/x509'
import { commonNameOf, issueCertificate } from './authority.ts'
import type { Authority, Member } from './authority.ts'

/** Certificate and key of this part, and the authority that all parts trust. PEM. */
export interface Identity extends Member {
  readonly certificate: string
  readonly key: string
  readonly authority: string
}

/** Identity of this part, which is replaced when the certificate is renewed. */
export interface IdentityHolder {
  current(): Identity
  /** Returns a function that removes the listener. */
  onChange(listener: (identity: Identity) => void): () => void
}

export interface ChangingIdentity extends IdentityHolder {
  replace(identity: Identity): void
}

export function holdIdentity(first: Identity): ChangingIdentity {
  const listeners = new Set<(identity: Identity) => void>()
  let current = first
  return {
    current: () => current,
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    replace(identity) {
      current = identity
      for (const listener of listeners) listener(identity)
    },
  }
}

/** Issues a certificate to a part that has the key of the authority. */
export function issueIdentity(authority: Authority, member: Member, now: Date): Identity {
  const { publicKey, privateKey } = createKeys()
  const certificate = issueCertificate(authority, member, { publicKey, now })
  return { ...member, certificate, key: toPem(privateKey), authority: authority.certificate }
}

/** Returns undefined for a certificate that does not name a role and an ID. The caller has checked its issuer. */
export function memberOf(certificate: X509Certificate): Member | undefined {
  const [, name, id] = /^([a-z]+):([\w-]{1,64})$/.exec(commonNameOf(certificate)) ?? []
  const role = roles.find((known) => known === name)
  return role && id !== undefined ? { role, id } : undefined
}

/** Time at which to renew: halfway, so that an api that is down for hours does no harm. */
export function renewalTime({ certificate }: Identity): Date {
  const { validFromDate, validToDate } = new X509Certificate(certificate)
  return new Date((validFromDate.getTime() + validToDate.getTime()) / 2)
}
