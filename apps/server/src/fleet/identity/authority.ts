/**
 * The certificate authority of a fleet. Threats: who has its key can call as any part. So only the apis have the key, and
 * a certificate names one role and one ID and expires within a day.
 */
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import type { Role } from '@atoll/contracts/fleet'
import {
  authorityExtensions,
  createKeys,
  dayBefore,
  dayMs,
  encodeCertificate,
  peerExtensions,
  toPem,
} from '@atoll/kit/certificates/x509'

/** PEM. */
export interface Authority {
  readonly certificate: string
  readonly key: string
}

export interface Member {
  readonly role: Role
  readonly id: string
}

const authorityName = 'Atoll fleet'
const authorityYears = 20
const certificateMs = dayMs
const clockSkewMs = 3_600_000

export function createAuthority(now: Date): Authority {
  const { publicKey, privateKey } = createKeys()
  const until = new Date(now)
  until.setUTCFullYear(now.getUTCFullYear() + authorityYears)
  const certificate = encodeCertificate({
    ...{ subject: authorityName, issuer: authorityName, publicKey },
    issuerKey: privateKey,
    from: dayBefore(now),
    until,
    extensions: authorityExtensions(publicKey),
  })
  return { certificate, key: toPem(privateKey) }
}

/** Returns a certificate in PEM. */
export function issueCertificate(
  authority: Authority,
  member: Member,
  owner: { readonly publicKey: KeyObject; readonly now: Date },
): string {
  const issuerKey = createPrivateKey(authority.key)
  return encodeCertificate({
    subject: `${member.role}:${member.id}`,
    issuer: commonNameOf(new X509Certificate(authority.certificate)),
    publicKey: owner.publicKey,
    issuerKey,
    from: new Date(owner.now.getTime() - clockSkewMs),
    until: new Date(owner.now.getTime() + certificateMs),
    extensions: peerExtensions(createPublicKey(issuerKey)),
  })
}

export function commonNameOf({ subject }: X509Certificate): string {
  return /^CN=(.*)$/m.exec(subject)?.[1] ?? ''
}
