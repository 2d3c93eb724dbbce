import { Fault } from '@atoll/kit/fault'
import type { FastifyReply } from 'fastify'
import type { RateState } from '../../app/teams/rate-limits.ts'

/** Sets the rate limit headers and throws an `exhausted` fault when the limit is exceeded. */
export function applyRate(
  reply: FastifyReply,
  { limit, remaining, resetSeconds }: RateState,
): void {
  reply.headers({
    'RateLimit-Limit': String(limit),
    'RateLimit-Remaining': String(Math.max(remaining, 0)),
    'RateLimit-Reset': String(resetSeconds),
  })
  if (remaining >= 0) return
  reply.header('Retry-After', String(resetSeconds))
  throw new Fault(
    'exhausted',
    'rate_limited',
    `Too many requests: the team may make ${limit} of this kind; try again in ${resetSeconds} seconds`,
  )
}
