import { systemClock } from '@atoll/kit/clock'
import type { Clock } from '@atoll/kit/clock'
import type { Logger } from '@atoll/kit/log'
import type { CertificateSource } from '../certificates.ts'
import { checkCertificate } from '../check-certificate.ts'
import type { CertificatePair } from '../check-certificate.ts'
import { createLocalCa, issueServerCertificate } from '../local-ca.ts'
import { openAcmeFiles } from './acme-files.ts'
import type { AcmeSettings } from './acme-settings.ts'
import { createDnsHook } from './dns-hook.ts'
import { createHttpChallenges } from './http-challenges.ts'
import { orderCertificate } from './order-certificate.ts'
import { startRenewal } from './renewal.ts'

export interface AcmeCertificates {
  readonly source: CertificateSource
  /** Returns the proof for a token of the CA. */
  findChallenge(token: string): string | undefined
  /** Orders certificates from now on. The listener for challenges must be open. */
  start(log: Logger): { close(): Promise<void> }
}

/**
 * Certificates of a CA, by ACME. Until there is one, HTTPS uses a temporary certificate: a server that waits for the CA
 * would leave its sandboxes without an owner.
 */
export function acmeCertificates(
  settings: AcmeSettings,
  parts: {
    readonly dataDir: string
    /** Host name of the server without a port. */
    readonly domain: string
    readonly clock?: Clock
    readonly intervalMs?: number
  },
): AcmeCertificates {
  const { dataDir, domain, clock = systemClock } = parts
  const { directoryUrl, hostNames, hook } = settings
  const files = openAcmeFiles(dataDir)
  const http = createHttpChallenges()
  const responder = hook === undefined ? http : createDnsHook(hook)
  let temporary: CertificatePair | undefined
  let hasLoaded = false

  async function load(): Promise<CertificatePair> {
    const stored = await files.readCertificate()
    const isUsable =
      stored && !checkCertificate(stored, domain, clock.now(), hostNames).unusableBecause
    if (isUsable) {
      hasLoaded = true
      return stored
    }
    if (hasLoaded) throw new Error(`${files.certificateFile} is gone or damaged`)
    const now = clock.now()
    return (temporary ??= issueServerCertificate(createLocalCa(domain, now), now))
  }

  return {
    source: {
      description: `the CA ${directoryUrl}, by ACME`,
      hostNames,
      isTemporary: (pair) => pair.cert === temporary?.cert,
      load,
    },
    findChallenge: http.find,
    start(log) {
      return startRenewal({
        ...{ settings, domain, files, log, clock, intervalMs: parts.intervalMs },
        async order(signal) {
          const accountKey = await files.accountKey(directoryUrl)
          return orderCertificate(settings, { accountKey, responder, signal })
        },
      })
    },
  }
}
