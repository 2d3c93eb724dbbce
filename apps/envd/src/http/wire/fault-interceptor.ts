/** Translates faults to Connect codes, for all RPCs. */
import { Code, ConnectError } from '@connectrpc/connect'
import type { Interceptor } from '@connectrpc/connect'
import { Fault } from '@atoll/kit/fault'
import type { FaultKind } from '@atoll/kit/fault'

const connectCode = {
  invalid: Code.InvalidArgument,
  unauthenticated: Code.Unauthenticated,
  forbidden: Code.PermissionDenied,
  not_found: Code.NotFound,
  conflict: Code.FailedPrecondition,
  exhausted: Code.ResourceExhausted,
  timeout: Code.DeadlineExceeded,
  unavailable: Code.Unavailable,
  internal: Code.Internal,
} as const satisfies Record<FaultKind, Code>

/** Receives unexpected errors; the client gets a generic message. */
export type ReportFailure = (cause: unknown) => void

/** Covers unary responses and errors thrown by streams. */
export function faultInterceptor(report: ReportFailure): Interceptor {
  return (next) => async (request) => {
    try {
      const response = await next(
        request.stream ? { ...request, message: withClientErrors(request.message) } : request,
      )
      if (!response.stream) return response
      return { ...response, message: withConnectErrors(response.message, report) }
    } catch (thrown) {
      throw toConnectError(thrown, report)
    }
  }
}

/** Errors while reading messages are the client's; the library reports some of them as internal. */
async function* withClientErrors<T>(messages: AsyncIterable<T>) {
  try {
    yield* messages
  } catch (thrown) {
    const error = ConnectError.from(thrown, Code.Canceled)
    throw error.code === Code.Internal
      ? new ConnectError(error.rawMessage, Code.InvalidArgument)
      : error
  }
}

async function* withConnectErrors<T>(messages: AsyncIterable<T>, report: ReportFailure) {
  let sending = false
  try {
    for await (const message of messages) {
      sending = true
      yield message
      sending = false
    }
  } catch (thrown) {
    // An error while a message is being sent comes from the connection: the client disconnected.
    if (sending) throw ConnectError.from(thrown, Code.Unknown)
    throw toConnectError(thrown, report)
  }
}

export function toConnectError(thrown: unknown, report: ReportFailure): ConnectError {
  if (thrown instanceof ConnectError) return thrown
  const fault = Fault.from(thrown)
  if (fault !== thrown) report(thrown)
  return new ConnectError(fault.message, connectCode[fault.kind], undefined, undefined, fault)
}
