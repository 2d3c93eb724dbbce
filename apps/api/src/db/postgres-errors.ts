import { Fault } from '@atoll/kit/fault'
import pg from 'pg'
import { unstorableText } from './unstorable-text.ts'

/** The errors of PostgreSQL in our words. A caller may try again after all that are `unavailable`. */

export function connectionFault(cause: unknown): Fault {
  return new Fault('unavailable', 'store_unavailable', 'The store does not answer; try again', {
    cause,
  })
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
  if (!(error instanceof pg.DatabaseError)) {
    return { fault: connectionFault(error), keepsConnection: false }
  }
  const { code = '' } = error
  if (code === badCharacter) return { fault: unstorableText(error), keepsConnection: true }
  const isPassing = passing.some((prefix) => code.startsWith(prefix))
  return { fault: isPassing ? connectionFault(error) : error, keepsConnection: true }
}
