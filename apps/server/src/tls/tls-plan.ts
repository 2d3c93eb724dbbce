import { isDomainName } from '@atoll/kit/domain-name'
import type { ServerConfig } from '../config.ts'
import type { ListenAddress } from '../listen-address.ts'
import { acmeCertificates } from './acme/acme-certificates.ts'
import type { AcmeCertificates } from './acme/acme-certificates.ts'
import { planAcme } from './acme/acme-settings.ts'
import { certificateFiles } from './certificate-files.ts'
import type { CertificateSource } from './certificates.ts'
import { readLocalCa } from './local-ca.ts'
import { localCertificates } from './local-certificates.ts'

/** How the server speaks HTTPS. */
export interface TlsPlan {
  /** Domain as clients write it, with a port unless that is 443. */
  readonly domain: string
  readonly hostName: string
  readonly listen: ListenAddress
  readonly source: CertificateSource
  readonly isLocalCa: boolean
  /** Absent: another program or the local CA renews the certificate. */
  readonly acme?: AcmeCertificates
}

/** Returns undefined if the server has no certificate: then it speaks plain HTTP only. */
export async function planTls(settings: ServerConfig['server']): Promise<TlsPlan | undefined> {
  const { ATOLL_DOMAIN, ATOLL_DATA_DIR, ATOLL_TLS_CERT_FILE, ATOLL_TLS_KEY_FILE } = settings
  if (ATOLL_DOMAIN === undefined) return undefined
  const { hostName, port = 443 } = parseDomain(ATOLL_DOMAIN)
  const domain = port === 443 ? hostName : `${hostName}:${port}`
  const listen = settings.ATOLL_TLS_LISTEN ?? { host: '127.0.0.1', port }
  const plan = { domain, hostName, listen }
  if (ATOLL_TLS_CERT_FILE !== undefined && ATOLL_TLS_KEY_FILE !== undefined) {
    const source = certificateFiles(ATOLL_TLS_CERT_FILE, ATOLL_TLS_KEY_FILE)
    return { ...plan, source, isLocalCa: false }
  }
  const acme = planAcme(settings, hostName)
  if (acme) {
    const certificates = acmeCertificates(acme, { dataDir: ATOLL_DATA_DIR, domain: hostName })
    return { ...plan, source: certificates.source, isLocalCa: false, acme: certificates }
  }
  // A domain of one label, such as localhost, has no usable wildcard certificate.
  if (!isDomainName(hostName) || !(await readLocalCa(ATOLL_DATA_DIR))) return undefined
  return { ...plan, source: localCertificates(ATOLL_DATA_DIR, hostName), isLocalCa: true }
}

/** Splits the value of ATOLL_DOMAIN. */
export function parseDomain(domain: string): {
  readonly hostName: string
  readonly port?: number
} {
  const [hostName = '', port] = domain.split(':')
  return port === undefined ? { hostName } : { hostName, port: Number(port) }
}
