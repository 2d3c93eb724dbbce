/** The one place that turns faults into Connect codes. */
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

/** Reports what nobody foresaw; callers see only that something went wrong. */
export type ReportFailure = (cause: unknown) => void

/** Covers unary answers and everything that a stream throws on its way. */
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

/** What goes wrong while messages are read is the caller's doing; the library calls some of it internal. */
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
    // While a message is on its way, what is thrown comes from the connection: the client is gone.
    if (sending) throw ConnectError.from(thrown, Code.Unknown)
    throw toConnectError(thrown, report)
  }
}

function toConnectError(thrown: unknown, report: ReportFailure): ConnectError {
  if (thrown instanceof ConnectError) return thrown
  const fault = Fault.from(thrown)
  if (fault !== thrown) report(thrown)
  return new ConnectError(fault.message, connectCode[fault.kind], undefined, undefined, fault)
}
