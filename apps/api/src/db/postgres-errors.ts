import { Fault } from '@atoll/kit/fault'
import { DatabaseError } from 'pg'
import { unstorableText } from './unstorable-text.ts'

/** The errors of PostgreSQL in our words. A caller may try again after all that are `unavailable`. */

export function connectionFault(cause: unknown): Fault {
  return new Fault('unavailable', 'store_unavailable', 'The store does not answer; try again', {
    cause,
  })
}

/** For whoever starts the server: says where, but not as whom, since the URL holds a password. */
export function openFault(url: string, error: unknown): unknown {
  if (!(error instanceof Fault)) return error
  const { host, pathname } = new URL(url)
  const { cause } = error
  // Where a name has several addresses, the failure has a code but no text.
  const why = cause instanceof Error ? cause.message || ('code' in cause ? cause.code : '') : cause
  const message = `PostgreSQL at ${host}${pathname} cannot be used: ${String(why)}`
  return new Fault('unavailable', 'store_unavailable', message, { cause })
}

/** What is no mistake of the statement, but of the moment: https://www.postgresql.org/docs/15/errcodes-appendix.html */
const passing = [
  '08', // connection exceptions
  '40', // serialization failure, deadlock: this side was chosen to give way
  '53', // out of connections, memory or disk
  '55P03', // a lock was not to be had in time
  '57', // cancelled, shutting down, starting
  '25006', // read-only: a standby that will be, or was, the primary
  '25P03', // idle in a transaction for too long
]
const badCharacter = '22021'

export interface StoreError {
  readonly fault: unknown
  /** Whether the server itself has answered, so that the connection is of further use. */
  readonly keepsConnection: boolean
}

export function toStoreError(error: unknown): StoreError {
  // A mistake of ours in what goes in, or a value that came out and is too large.
  if (error instanceof TypeError || error instanceof RangeError) {
    return { fault: error, keepsConnection: true }
  }
  if (!(error instanceof DatabaseError)) {
    return { fault: connectionFault(error), keepsConnection: false }
  }
  const { code = '' } = error
  if (code === badCharacter) return { fault: unstorableText(error), keepsConnection: true }
  const isPassing = passing.some((prefix) => code.startsWith(prefix))
  return { fault: isPassing ? connectionFault(error) : error, keepsConnection: true }
}
