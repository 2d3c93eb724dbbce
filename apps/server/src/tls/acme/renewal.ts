import { createHash, X509Certificate } from 'node:crypto'
import type { Clock } from '@atoll/kit/clock'
import type { Logger } from '@atoll/kit/log'
import { repeat } from '@atoll/kit/repeat'
import { checkCertificate } from '../check-certificate.ts'
import type { CertificatePair } from '../check-certificate.ts'
import type { AcmeFiles } from './acme-files.ts'
import type { AcmeSettings } from './acme-settings.ts'
import { longestDelayMs, retryDelayMs } from './retry-delay.ts'

export interface RenewalParts {
  readonly settings: AcmeSettings
  /** Host name of the server without a port. */
  readonly domain: string
  readonly files: AcmeFiles
  /** Gets a certificate from the CA. */
  order(signal: AbortSignal): Promise<CertificatePair>
  readonly log: Logger
  readonly clock: Clock
  readonly intervalMs?: number | undefined
}

const defaultIntervalMs = 60_000
/** The reason may contain what the CA or the hook says. */
const longestReason = 1_000

/**
 * Keeps the stored certificate fresh from now on. After a failure it waits, longer each time. Failures are stored
 * before the attempt, so that not even a server that crashes and restarts again and again floods the CA.
 */
export function startRenewal(parts: RenewalParts): { close(): Promise<void> } {
  const { log } = parts
  const closing = new AbortController()
  const pass = async () => {
    if (!closing.signal.aborted) await renewIfDue(parts, closing.signal)
  }
  const onError = (error: unknown) => {
    if (closing.signal.aborted) return
    log.error({ event: 'tls.acme_error', err: error }, 'the files of ACME cannot be used')
  }
  const first = pass().catch(onError)
  const stop = repeat(parts.intervalMs ?? defaultIntervalMs, () => first.then(pass), onError)
  return {
    async close() {
      closing.abort()
      await Promise.all([first, stop()])
    },
  }
}

export async function renewIfDue(parts: RenewalParts, signal: AbortSignal): Promise<void> {
  const { settings, domain, files, log, clock } = parts
  const stored = await files.readCertificate()
  if (stored && !isDue(stored, parts)) return
  const name = hashOf(settings)
  const earlier = await files.readAttempts()
  // Changed settings may be the remedy. A time far ahead comes from a clock that was wrong.
  const counts = earlier?.settings === name ? earlier : undefined
  const nowMs = clock.now().getTime()
  const waitMs = (counts?.notBeforeMs ?? 0) - nowMs
  if (waitMs > 0 && waitMs <= longestDelayMs) return
  const failures = (counts?.failures ?? 0) + 1
  const notBeforeMs = nowMs + retryDelayMs(failures)
  await files.saveAttempts({ settings: name, failures, notBeforeMs })
  const { directoryUrl, hostNames } = settings
  log.info({ event: 'tls.acme_order', directoryUrl, hostNames })
  try {
    const pair = await parts.order(signal)
    const { unusableBecause, refusedBecause } = checkCertificate(
      pair,
      domain,
      clock.now(),
      hostNames,
    )
    const fault = unusableBecause ?? refusedBecause
    if (fault !== undefined) throw new Error(`the CA issued a certificate that is no use: ${fault}`)
    await files.saveCertificate(pair)
    await files.saveAttempts({ settings: name, failures: 0, notBeforeMs: 0 })
    const { validToDate } = new X509Certificate(pair.cert)
    log.info({ event: 'tls.acme_issued', hostNames, validUntil: validToDate.toISOString() })
  } catch (error) {
    if (signal.aborted) {
      // A shutdown is no failure. Orders may still not follow each other at once.
      const paused = { failures: failures - 1, notBeforeMs: nowMs + retryDelayMs(1) }
      return files.saveAttempts({ settings: name, ...paused })
    }
    const text = error instanceof Error ? error.message : String(error)
    const reason = text.slice(0, longestReason)
    const retryAt = new Date(notBeforeMs).toISOString()
    log.error(
      { event: 'tls.acme_failed', reason, failures, retryAt, directoryUrl, hostNames },
      stored
        ? 'no new certificate from the CA; HTTPS keeps the old one'
        : 'no certificate from the CA; HTTPS has a temporary one that clients refuse',
    )
  }
}

/** A third of the lifetime is left for attempts. It may be 90 days or 6. */
function isDue(pair: CertificatePair, { domain, settings, clock }: RenewalParts): boolean {
  const now = clock.now()
  const findings = checkCertificate(pair, domain, now, settings.hostNames)
  if (Object.keys(findings).length > 0) return true
  const { validFromDate, validToDate } = new X509Certificate(pair.cert)
  const lifetimeMs = validToDate.getTime() - validFromDate.getTime()
  return validToDate.getTime() - now.getTime() < lifetimeMs / 3
}

function hashOf(settings: AcmeSettings): string {
  return createHash('sha256').update(JSON.stringify(settings)).digest('hex')
}
