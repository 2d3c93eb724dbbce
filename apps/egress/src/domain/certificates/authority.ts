/**
 * Per-sandbox certificate authorities, and the server certificates that they issue to the egress proxy.
 *
 * Threats: anyone who has the key of a CA can impersonate any server towards its sandbox, so the key never enters the
 * sandbox. The CA cannot issue certificates for other CAs.
 */
import { createPrivateKey, createPublicKey } from 'node:crypto'
import type { Authority } from '@atoll/contracts/network/rules'
import {
  authorityExtensions,
  createKeys,
  dayBefore,
  dayMs,
  encodeCertificate,
  serverExtensions,
  toPem,
} from '@atoll/kit/certificates/x509'
import type { KeyPair } from '@atoll/kit/certificates/x509'

export function createAuthority(now = new Date()): Authority {
  const { publicKey, privateKey } = createKeys()
  const until = new Date(now)
  until.setUTCFullYear(now.getUTCFullYear() + 10)
  const certificate = encodeCertificate({
    subject: authorityName,
    issuer: authorityName,
    publicKey,
    issuerKey: privateKey,
    from: dayBefore(now),
    until,
    extensions: authorityExtensions(publicKey),
  })
  return { certificate, key: toPem(privateKey) }
}

/** Issues a certificate for a server called `name`. All certificates share one key pair. */
export function issueCertificate(
  authority: Authority,
  name: string,
  now = new Date(),
): { readonly certificate: string; readonly key: string } {
  leafKeys ??= createKeys()
  const { publicKey, privateKey } = leafKeys
  const issuerKey = createPrivateKey(authority.key)
  const certificate = encodeCertificate({
    subject: leafName,
    issuer: authorityName,
    publicKey,
    issuerKey,
    from: dayBefore(now),
    until: new Date(now.getTime() + 365 * dayMs),
    extensions: serverExtensions([name], createPublicKey(issuerKey)),
  })
  return { certificate, key: toPem(privateKey) }
}

/** Sandboxes look up the CA by a hash of this name, so it must not change. */
const authorityName = 'atoll sandbox egress'
/**
 * Clients check only the subject alternative name (RFC 6125, 6.4.4), which may exceed the 64 characters of a common
 * name.
 */
const leafName = 'atoll sandbox egress server'

let leafKeys: KeyPair | undefined
