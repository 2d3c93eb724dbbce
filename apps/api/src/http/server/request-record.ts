import { Fault } from '@atoll/kit/fault'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** An answered request, for the log and the metrics. */
export interface RequestRecord {
  /** Operation ID; undefined for paths that are none. */
  readonly operation: string | undefined
  readonly status: number
  readonly durationMs: number
  readonly teamId?: string
  readonly sandboxId?: string
  /** Reason of the fault, as in docs/errors.md. */
  readonly reason?: string
}

export type OnRequest = (record: RequestRecord) => void

interface Facts {
  teamId?: string
  sandboxId?: string
  reason?: string
}

const factsOf = new WeakMap<FastifyRequest, Facts>()

function noteFacts(request: FastifyRequest, facts: Facts): void {
  const known = factsOf.get(request)
  if (known) Object.assign(known, facts)
  else factsOf.set(request, facts)
}

export function noteTeam(request: FastifyRequest, teamId: string): void {
  noteFacts(request, { teamId })
}

/** Takes the sandbox from a response that describes one: the request of a create does not name it. */
export function noteAnswer(request: FastifyRequest, body: unknown): void {
  if (typeof body !== 'object' || body === null || !('sandboxID' in body)) return
  if (typeof body.sandboxID === 'string') noteFacts(request, { sandboxId: body.sandboxID })
}

export function noteError(request: FastifyRequest, error: unknown): void {
  const isClientError =
    error instanceof Error && 'statusCode' in error && Number(error.statusCode) < 500
  const other = isClientError ? 'invalid_request' : 'internal'
  noteFacts(request, { reason: error instanceof Fault ? error.reason : other })
}

/** Bounds text that the client chose. */
const maxIdLength = 64

export function toRecord(request: FastifyRequest, reply: FastifyReply): RequestRecord {
  const facts = factsOf.get(request) ?? {}
  const { params } = request
  const named =
    typeof params === 'object' && params !== null && 'sandboxID' in params
      ? String(params.sandboxID).slice(0, maxIdLength)
      : undefined
  return {
    operation: request.routeOptions.config.operation,
    status: reply.statusCode,
    durationMs: reply.elapsedTime,
    ...(named !== undefined && { sandboxId: named }),
    ...facts,
  }
}
