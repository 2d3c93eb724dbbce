import { repeat } from '@atoll/kit/repeat'
import { systemClock } from '@atoll/kit/clock'
import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import { checkCertificate } from './check-certificate.ts'
import type { CertificatePair } from './check-certificate.ts'

/** Certificate of the HTTPS listener. Follows its source without a restart. */
export interface Certificates {
  current(): CertificatePair
  onChange(listener: (pair: CertificatePair) => void): void
  close(): Promise<void>
}

export interface CertificateSource {
  /** Named in messages. */
  readonly description: string
  /** Names that the certificate must have. Default: all names directly below the domain. */
  readonly hostNames?: readonly string[]
  /** Returns whether clients refuse the certificate because the source has no better one yet. */
  readonly isTemporary?: (pair: CertificatePair) => boolean
  /** Returns the certificate to use from now on. Called again and again. */
  load(): Promise<CertificatePair>
}

/** Files are small, and watching them misses the links that certbot and others replace. */
const intervalMs = 10_000

/**
 * Throws a fault if the first certificate cannot be used. One that clients will refuse, such as an expired one, is only
 * logged: sandboxes need their server, which is still reachable over plain HTTP. A later certificate with any fault is
 * not used.
 */
export async function openCertificates(
  source: CertificateSource,
  parts: {
    /** Host name without a port. */
    readonly domain: string
    readonly log: Logger
    readonly clock?: Clock
    readonly intervalMs?: number
  },
): Promise<Certificates> {
  const { domain, log, clock = systemClock } = parts
  const check = (pair: CertificatePair) =>
    checkCertificate(pair, domain, clock.now(), source.hostNames)
  const listeners: ((pair: CertificatePair) => void)[] = []
  let current = await loadFirst()
  let refused = ''

  return {
    current: () => current,
    onChange: (listener) => void listeners.push(listener),
    close: repeat(parts.intervalMs ?? intervalMs, reload, (error) => refuse(textOf(error))),
  }

  async function loadFirst(): Promise<CertificatePair> {
    const pair = await source.load().catch((error: unknown) => {
      throw unusable(source, textOf(error), error)
    })
    const { unusableBecause, refusedBecause } = check(pair)
    if (unusableBecause !== undefined) throw unusable(source, unusableBecause)
    if (refusedBecause !== undefined) {
      log.error({ event: 'tls.bad_certificate', reason: refusedBecause }, source.description)
    }
    if (source.isTemporary?.(pair))
      log.warn({ event: 'tls.temporary_certificate' }, noneYet(source))
    return pair
  }

  async function reload(): Promise<void> {
    const pair = await source.load()
    if (pair.cert === current.cert && pair.key === current.key) {
      refused = ''
      return
    }
    const found = check(pair)
    const reason = found.unusableBecause ?? found.refusedBecause
    if (reason !== undefined) return refuse(reason)
    current = pair
    refused = ''
    for (const listener of listeners) listener(pair)
    log.info({ event: 'tls.new_certificate' }, source.description)
  }

  /** Logs each reason once, not at every attempt. */
  function refuse(reason: string): void {
    if (reason === refused) return
    refused = reason
    log.error({ event: 'tls.certificate_refused', reason }, `${source.description}: kept the old`)
  }
}

function noneYet({ description }: CertificateSource): string {
  return `${description}: no certificate yet. HTTPS starts with a temporary one that clients refuse`
}

function unusable({ description }: CertificateSource, reason: string, cause?: unknown): Fault {
  const message = `HTTPS cannot start with ${description}: ${reason}`
  return new Fault('invalid', 'unusable_certificate', message, { cause })
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
