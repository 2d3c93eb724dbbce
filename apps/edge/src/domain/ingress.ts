/**
 * Access rules for traffic to a sandbox. They do not apply to envd, which checks its own token.
 *
 * Threats: a caller could guess the token from the response time, so tokens are compared in constant time. A client
 * could control the masked host, so the mask comes from the creator of the sandbox and contains only the port of the
 * request.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { envdPort } from './internal-path.ts'
import type { Refusal } from './refusal.ts'
import type { RequestHead, Target } from './route.ts'

export interface Ingress {
  /** Required from callers if present. */
  readonly trafficToken?: string | undefined
  /** Host header for programs in the sandbox; `${PORT}` is replaced by the port. */
  readonly maskHost?: string | undefined
  /** Ports on which the sandbox serves TLS. */
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
  const message = `This sandbox is private: the token in the header ${trafficHeader} is wrong`
  return { kind: 'forbidden', sandboxId, title: 'Wrong token', message }
}

/** Applies the masked host and TLS to the target. */
export function maskTarget({ maskHost, httpsPorts }: Ingress, target: Target): Target {
  if (target.port === envdPort) return target
  const usesTls = httpsPorts.has(target.port)
  if (maskHost === undefined) return usesTls ? { ...target, usesTls } : target
  return {
    ...target,
    usesTls,
    authority: maskHost.replaceAll('${PORT}', String(target.port)),
    maskedAuthority: target.authority,
  }
}

function isSame(given: string, wanted: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(wanted))
}
