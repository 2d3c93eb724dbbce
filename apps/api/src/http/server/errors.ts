import { publishedReasons } from '@atoll/contracts/errors'
import type { ErrorBody } from '@atoll/contracts/errors'
import { diskFull } from '@atoll/kit/disk-full'
import { Fault } from '@atoll/kit/fault'
import type { FaultKind } from '@atoll/kit/fault'

/**
 * The only place that maps faults to HTTP statuses. A full disk has its own (507): deleting helps, waiting does not.
 */

const statuses = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  exhausted: 429,
  internal: 500,
  unavailable: 503,
  timeout: 504,
} as const satisfies Record<FaultKind, number>

export interface Failure {
  readonly body: ErrorBody
  /** Set for server errors, which belong in the log. */
  readonly cause?: unknown
}

/** Unexpected errors need an operator's attention; a full or stopping server does not. */
export function logLevelOf({ body }: Failure): 'error' | 'warn' {
  return body.code === 500 ? 'error' : 'warn'
}

export const bodyLimitBytes = 16 * 1024 * 1024

export function toFailure(error: unknown, requestId: string): Failure {
  if (error instanceof Fault) return fromFault(error)
  return fromFramework(error) ?? fromUnforeseen(error, requestId)
}

function fromFault(fault: Fault): Failure {
  const code = fault.reason === diskFull ? 507 : statuses[fault.kind]
  const published = publishedReasons.find((reason) => reason === fault.reason)
  return {
    body: { code, message: fault.message, ...(published && { error_code: published }) },
    ...(code >= 500 && { cause: fault }),
  }
}

/** Converts Fastify's client errors, with clearer messages where we have them. */
function fromFramework(error: unknown): Failure | undefined {
  if (!(error instanceof Error) || !('statusCode' in error)) return undefined
  const { statusCode, message } = error
  if (typeof statusCode !== 'number' || statusCode < 400 || statusCode >= 500) return undefined
  return { body: { code: statusCode, message: frameworkTexts[statusCode] ?? message } }
}

const frameworkTexts: Readonly<Record<number, string>> = {
  414: 'The path is too long: check the id in it',
  413: `The body is too large: at most ${bodyLimitBytes / 1024 / 1024} MiB are accepted`,
  415: 'The media type of the body is not supported: send JSON with Content-Type: application/json',
}

function fromUnforeseen(error: unknown, requestId: string): Failure {
  const message = `Internal error; the log of the server has the details under ${requestId}`
  return { body: { code: 500, message, error_code: 'internal_server_error' }, cause: error }
}
