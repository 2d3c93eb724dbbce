import { Fault } from '@atoll/kit/fault'

export type Order = 'asc' | 'desc'

/** Sort key: start time, then ID (ascending under `desc`, descending under `asc`). */
export interface Position {
  readonly startedAt: Date
  readonly id: string
}

/** Encodes a list position as an opaque token. The token includes the sort order and is invalid for the other order. */
export function toToken({ startedAt, id }: Position, order: Order): string {
  const text = `${startedAt.toISOString()}__${id}${order === 'asc' ? '__asc' : ''}`
  return Buffer.from(text).toString('base64url')
}

export function fromToken(token: string, order: Order): Position {
  const text = Buffer.from(token, 'base64url').toString('utf8')
  const [, time, id, asc] = /^([-0-9]+T[0-9:.]+Z)__([a-z0-9-]+)(__asc)?$/.exec(text) ?? []
  const startedAt = new Date(time ?? '')
  if (id === undefined || Number.isNaN(startedAt.getTime())) {
    throw invalidToken('take it from the X-Next-Token header of the page before')
  }
  if ((asc === undefined) !== (order === 'desc')) {
    throw invalidToken(`it was made for the other order; keep \`order\` the same on every page`)
  }
  return { startedAt, id }
}

export function invalidToken(advice: string): Fault {
  return new Fault('invalid', 'invalid_next_token', `Invalid next token: ${advice}`)
}
