import type { Logger } from '@atoll/kit/log'
import type { RequestListener } from 'node:http'
import type { ServerConfig } from '../config.ts'
import type { ListenAddress } from '../listen-address.ts'
import { openCertificates } from './certificates.ts'
import type { Certificates } from './certificates.ts'
import { createHttpRedirect } from './http-redirect.ts'
import { parseDomain, planTls } from './tls-plan.ts'
import type { TlsPlan } from './tls-plan.ts'

export interface OpenTls {
  readonly plan: TlsPlan
  readonly certificates: Certificates
  /** Plain HTTP for the CA and for browsers. Absent: off. */
  readonly redirect?: { readonly address: ListenAddress; readonly handle: RequestListener }
  /** Gets certificates by itself from now on, if it can. The listeners must be open. */
  startRenewal(): { close(): Promise<void> }
}

/** Returns undefined if HTTPS is off. */
export async function openTls(
  settings: ServerConfig['server'],
  log: Logger,
): Promise<OpenTls | undefined> {
  const plan = await planTls(settings)
  if (!plan) {
    if (settings.ATOLL_HTTP_LISTEN) {
      const text = 'ATOLL_HTTP_LISTEN has no effect: there is no certificate, so HTTPS is off'
      log.error({ event: 'tls.no_certificate' }, text)
    }
    return undefined
  }
  const { source, hostName: domain } = plan
  const { ATOLL_HTTP_LISTEN: address, ATOLL_DOMAIN = '' } = settings
  const redirect = {
    domain,
    httpsPort: parseDomain(ATOLL_DOMAIN).port ?? 443,
    findChallenge: plan.acme?.findChallenge,
  }
  return {
    plan,
    certificates: await openCertificates(source, { domain, log }),
    ...(address && { redirect: { address, handle: createHttpRedirect(redirect) } }),
    startRenewal: () => plan.acme?.start(log) ?? { close: async () => {} },
  }
}
