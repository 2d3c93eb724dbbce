import { createPrivateKey, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'

export interface CertificatePair {
  /** PEM: the certificate of the server, then those of its issuers. */
  readonly cert: string
  /** PEM, not encrypted. */
  readonly key: string
}

export interface Findings {
  /** Reason why no TLS server can start with the certificate. */
  readonly unusableBecause?: string
  /** Reason why clients will refuse the certificate. */
  readonly refusedBecause?: string
}

/**
 * `domain` is a host name without a port. The certificate must be valid for `hostNames`, by default for all names directly
 * below the domain. Reasons never contain parts of the key.
 */
export function checkCertificate(
  pair: CertificatePair,
  domain: string,
  now: Date,
  hostNames: readonly string[] = [`*.${domain}`],
): Findings {
  const certificate = attempt(() => new X509Certificate(pair.cert))
  if (!certificate) return { unusableBecause: 'the certificate is not in PEM format' }
  const key = attempt(() => createPrivateKey(pair.key))
  if (!key) return { unusableBecause: 'the key is not in PEM format, or it is encrypted' }
  if (!certificate.checkPrivateKey(key)) {
    return { unusableBecause: 'the key does not belong to the certificate' }
  }
  if (!attempt(() => createSecureContext(pair))) {
    return {
      unusableBecause: 'OpenSSL refuses the certificate, for example because its key is short',
    }
  }
  const { validFromDate, validToDate } = certificate
  if (now > validToDate) {
    return { refusedBecause: `the certificate expired on ${validToDate.toISOString()}` }
  }
  if (now < validFromDate) {
    return {
      refusedBecause: `the certificate is valid only from ${validFromDate.toISOString()} on`,
    }
  }
  const needed = hostNames.flatMap((name) =>
    name.startsWith('*') ? ['api', '8000-sandbox'].map((label) => name.replace('*', label)) : name,
  )
  const missing = needed.find((name) => certificate.checkHost(name) === undefined)
  return missing === undefined
    ? {}
    : {
        refusedBecause: `the certificate is not valid for ${missing}; it needs ${hostNames.join(', ')}`,
      }
}

function attempt<Result>(run: () => Result): Result | undefined {
  try {
    return run()
  } catch {
    return undefined
  }
}
