import type { Logger } from '@atoll/kit/log'
import type { ServerConfig } from '../config.ts'
import { openCertificates } from './certificates.ts'
import type { Certificates } from './certificates.ts'
import { planTls } from './tls-plan.ts'
import type { TlsPlan } from './tls-plan.ts'

export interface OpenTls {
  readonly plan: TlsPlan
  readonly certificates: Certificates
}

/** Returns undefined if HTTPS is off. */
export async function openTls(
  settings: ServerConfig['server'],
  log: Logger,
): Promise<OpenTls | undefined> {
  const plan = await planTls(settings)
  if (!plan) return undefined
  const { source, hostName: domain } = plan
  return { plan, certificates: await openCertificates(source, { domain, log }) }
}
