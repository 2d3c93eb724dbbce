import { Code, ConnectError } from '@connectrpc/connect'
import type { Interceptor } from '@connectrpc/connect'
import { oldestProtocol, protocolHeader, protocolVersion } from '@atoll/contracts/fleet'

/** Refuses calls of parts that are too old. A newer part decides by itself whether it understands this one. */
export const checkProtocol: Interceptor = (next) => (request) => {
  const version = Number(request.header.get(protocolHeader) ?? Number.NaN)
  if (version >= oldestProtocol) return next(request)
  throw new ConnectError(
    `this part speaks version ${protocolVersion} of the internal protocol and understands ${oldestProtocol} and later: upgrade the caller`,
    Code.FailedPrecondition,
  )
}
