import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { writeFileAtomic } from '@atoll/kit/atomic-file'
import { dayMs } from '@atoll/kit/certificates/x509'
import { systemClock } from '@atoll/kit/clock'
import { checkCertificate } from './check-certificate.ts'
import type { CertificatePair } from './check-certificate.ts'
import type { CertificateSource } from './certificates.ts'
import { issueServerCertificate, localCaFiles, readLocalCa } from './local-ca.ts'
import type { LocalCa } from './local-ca.ts'
import { joinPair, splitPair } from './pem-pair.ts'

/** Remaining time at which the server gets its next certificate. */
const renewBeforeMs = 30 * dayMs

/** Certificates of the local CA, each kept in the data directory until it is renewed. */
export function localCertificates(
  dataDir: string,
  domain: string,
  clock = systemClock,
): CertificateSource {
  const files = localCaFiles(dataDir)

  return {
    description: `the local CA ${files.authority}`,
    async load() {
      const ca = await readLocalCa(dataDir)
      if (!ca) throw new Error('it is gone; create one with atoll tls local')
      if (ca.domain !== domain) {
        throw new Error(
          `it is for the domain ${ca.domain}, but ATOLL_DOMAIN is ${domain}. Change ATOLL_DOMAIN, or run atoll tls local --replace`,
        )
      }
      const now = clock.now()
      const kept = splitPair(await readFile(files.server, 'utf8').catch(() => ''))
      if (kept && isStillValid(kept, ca, now)) return kept
      const issued = issueServerCertificate(ca, now)
      await writeFileAtomic(files.server, joinPair(issued), 0o600)
      return issued
    },
  }
}

function isStillValid(pair: CertificatePair, ca: LocalCa, now: Date): boolean {
  const findings = checkCertificate(pair, ca.domain, now)
  if (Object.keys(findings).length > 0) return false
  const certificate = new X509Certificate(pair.cert)
  const issuer = new X509Certificate(ca.certificate)
  const leftMs = certificate.validToDate.getTime() - now.getTime()
  // A certificate that ends with its CA cannot be renewed.
  const isLast = certificate.validToDate >= issuer.validToDate
  return certificate.verify(issuer.publicKey) && (leftMs > renewBeforeMs || isLast)
}
