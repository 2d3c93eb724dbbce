/**
 * How a sandbox wants to be reached from outside. None of it concerns envd, which has a token of its own.
 *
 * Threats: a caller that guesses at the token by the time a wrong one takes; a mask that a client could steer, which
 * is why it comes from whoever made the sandbox and takes nothing but the port from the request.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { envdPort } from './internal-path.ts'
import type { Refusal } from './refusal.ts'
import type { RequestHead, Target } from './route.ts'

export interface Ingress {
  /** Present: callers must know it. */
  readonly trafficToken?: string | undefined
  /** The Host that programs see; `${PORT}` stands for the port. */
  readonly maskHost?: string | undefined
  /** Where the sandbox speaks TLS itself. */
  readonly httpsPorts: ReadonlySet<number>
}

export const openIngress: Ingress = { httpsPorts: new Set() }

/** Tokens that a request carries. */
export interface Credentials {
  readonly accessToken: string | undefined
  readonly trafficToken: string | undefined
}

export function credentialsOf({ headers }: RequestHead): Credentials {
  const traffic = headers['svc-traffic-access-token'] ?? headers[trafficHeader]
  return {
    accessToken: headers['x-access-token']?.toString(),
    trafficToken: traffic?.toString(),
  }
}

const trafficHeader = 'e2b-traffic-access-token'

export function checkTraffic(
  { trafficToken: wanted }: Ingress,
  { sandboxId, port }: Target,
  { trafficToken: given }: Credentials,
): Refusal | undefined {
  if (wanted === undefined || port === envdPort) return undefined
  if (given === undefined) {
    const message = `This sandbox is private: the header ${trafficHeader} is missing`
    return { kind: 'forbidden', sandboxId, title: 'Token missing', message }
  }
  if (isSame(given, wanted)) return undefined
  const message = `This sandbox is private: the token in the header ${trafficHeader} is not its own`
  return { kind: 'forbidden', sandboxId, title: 'Wrong token', message }
}

/** The target as it is passed on. */
export function maskTarget({ maskHost, httpsPorts }: Ingress, target: Target): Target {
  if (target.port === envdPort) return target
  const isSecure = httpsPorts.has(target.port)
  if (maskHost === undefined) return isSecure ? { ...target, isSecure } : target
  return {
    ...target,
    isSecure,
    authority: maskHost.replaceAll('${PORT}', String(target.port)),
    maskedAuthority: target.authority,
  }
}

function isSame(given: string, wanted: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(wanted))
}
