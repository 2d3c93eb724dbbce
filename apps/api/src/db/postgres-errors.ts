import { Fault } from '@atoll/kit/fault'
import { DatabaseError } from 'pg'
import { describeTarget } from './postgres/hosts.ts'
import { unstorableText } from './unstorable-text.ts'

/** Converts PostgreSQL errors to faults. A caller may retry after every `unavailable` fault. */

export function connectionFault(cause: unknown): Fault {
  return new Fault('unavailable', 'store_unavailable', 'The database does not answer; try again', {
    cause,
  })
}

/** Startup error for the operator. Shows the host and database but not the credentials in the URL. */
export function openFault(url: string, error: unknown): unknown {
  if (!(error instanceof Fault)) return error
  const { cause } = error
  // If a host name has several addresses, the connection error has a code but no message.
  const why = cause instanceof Error ? cause.message || ('code' in cause ? cause.code : '') : cause
  const message = `PostgreSQL at ${describeTarget(url)} cannot be used: ${String(why)}`
  return new Fault('unavailable', 'store_unavailable', message, { cause })
}

/** Transient errors, which the statement did not cause: https://www.postgresql.org/docs/15/errcodes-appendix.html */
const transientCodes = [
  '08', // connection exceptions
  '40', // serialization failure, or deadlock victim
  '53', // out of connections, memory or disk
  '55P03', // lock timeout
  '57', // cancelled, shutting down, starting
  '25006', // read-only: a standby before or after a failover
  '25P03', // idle in a transaction for too long
]
const badCharacter = '22021'
/** The server was the primary when the connection was made, and is a standby since a failover. */
const readOnly = '25006'

export interface StoreError {
  readonly fault: unknown
  /** Whether the connection is still usable: the server itself reported the error, and takes writes. */
  readonly keepsConnection: boolean
}

export function toStoreError(error: unknown): StoreError {
  // Invalid parameter from our code, or a returned value that is too large.
  if (error instanceof TypeError || error instanceof RangeError) {
    return { fault: error, keepsConnection: true }
  }
  if (!(error instanceof DatabaseError)) {
    return { fault: connectionFault(error), keepsConnection: false }
  }
  const { code = '' } = error
  if (code === badCharacter) return { fault: unstorableText(error), keepsConnection: true }
  const isTransient = transientCodes.some((prefix) => code.startsWith(prefix))
  const fault = isTransient ? connectionFault(error) : error
  return { fault, keepsConnection: code !== readOnly }
}
