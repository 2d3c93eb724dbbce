import { ErrorBody } from '@atoll/contracts/errors'
import { Fault } from '@atoll/kit/fault'
import type { FaultKind } from '@atoll/kit/fault'

/** Translates HTTP statuses and socket errors back to faults, whose `kind` callers switch on. */

export function faultFromReply(status: number, body: unknown): Fault {
  const kind = kindOfStatus(status)
  const parsed = ErrorBody.safeParse(body)
  const message = parsed.success
    ? parsed.data.message
    : `The server answered with HTTP status ${status}`
  return new Fault(kind, (parsed.success && parsed.data.error_code) || kind, message)
}

/** Returns a fault if `thrown` or one of its causes means that the server could not be reached. */
export function faultFromSocket(thrown: unknown, url: string): Fault | undefined {
  for (let link = thrown; link instanceof Error; link = link.cause) {
    const code = 'code' in link && typeof link.code === 'string' ? link.code : ''
    if (unreachableCodes.has(code)) {
      return new Fault('unavailable', 'no_server', `No server at ${url}`, { cause: thrown })
    }
  }
  return undefined
}

const unreachableCodes = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH', 'ENETUNREACH'])

function kindOfStatus(status: number): FaultKind {
  const known = kinds.get(status)
  if (known) return known
  return status >= 400 && status < 500 ? 'invalid' : 'internal'
}

const kinds: ReadonlyMap<number, FaultKind> = new Map([
  [401, 'unauthenticated'],
  [403, 'forbidden'],
  [404, 'not_found'],
  [409, 'conflict'],
  [429, 'exhausted'],
  [502, 'unavailable'],
  [503, 'unavailable'],
  [504, 'timeout'],
  [507, 'exhausted'],
])
