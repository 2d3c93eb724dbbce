import { Fault } from '@atoll/kit/fault'
import type { FaultKind } from '@atoll/kit/fault'
import { Code, ConnectError } from '@connectrpc/connect'
import { faultFromSocket } from './http-fault.ts'

/** Translates Connect errors to faults. A separate file, so that HTTP-only clients need not load Connect. */
export function faultFromConnect(thrown: unknown, url: string): Fault {
  if (thrown instanceof Fault) return thrown
  const error = ConnectError.from(thrown)
  const unreachable = faultFromSocket(error, url)
  if (unreachable) return unreachable
  const kind = kindOfCode[error.code]
  return new Fault(kind, `process_${kind}`, messageOf(error, url), { cause: error })
}

/** A stream that a proxy or another kind of server rejected carries no message but the HTTP status. */
function messageOf({ rawMessage }: ConnectError, url: string): string {
  return /^HTTP \d+$/.test(rawMessage)
    ? `Cannot reach the sandbox: ${url} answered ${rawMessage}`
    : rawMessage
}

const kindOfCode = {
  [Code.InvalidArgument]: 'invalid',
  [Code.OutOfRange]: 'invalid',
  [Code.Unimplemented]: 'invalid',
  [Code.Unauthenticated]: 'unauthenticated',
  [Code.PermissionDenied]: 'forbidden',
  [Code.NotFound]: 'not_found',
  [Code.AlreadyExists]: 'conflict',
  [Code.FailedPrecondition]: 'conflict',
  [Code.Aborted]: 'conflict',
  [Code.ResourceExhausted]: 'exhausted',
  [Code.DeadlineExceeded]: 'timeout',
  [Code.Canceled]: 'unavailable',
  [Code.Unavailable]: 'unavailable',
  [Code.Unknown]: 'internal',
  [Code.Internal]: 'internal',
  [Code.DataLoss]: 'internal',
} satisfies Record<Code, FaultKind>
