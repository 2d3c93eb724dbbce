import { isOutOfSpace } from '@atoll/kit/disk-full'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import { Code, ConnectError } from '@connectrpc/connect'
import type { Interceptor } from '@connectrpc/connect'
import { connectCodes } from '@atoll/contracts/connect-codes'
import { reasonHeader, staleGeneration, wrongEpoch, wrongNode } from '@atoll/contracts/node-faults'
import { ranOutOfSpace } from '../domain/host/disk-space.ts'

/**
 * Maps faults to Connect codes. Logs unexpected errors here and hides their cause from the client.
 */
export function reportFaults(log: Logger): Interceptor {
  return (next) => async (request) => {
    try {
      const response = await next(request)
      if (!response.stream) return response
      return { ...response, message: watched(response.message, toError) }
    } catch (thrown) {
      throw toError(thrown)
    }

    function toError(thrown: unknown): ConnectError {
      if (thrown instanceof ConnectError) return thrown
      const isExpected = thrown instanceof Fault && thrown.kind !== 'internal'
      const fault = !isExpected && isOutOfSpace(thrown) ? ranOutOfSpace(thrown) : Fault.from(thrown)
      if (fault.kind === 'internal') {
        log.error(
          { err: fault.cause ?? fault, event: `node.${request.method.name}` },
          fault.message,
        )
      }
      const code = codeOfReason(fault.reason) ?? connectCodes[fault.kind]
      return new ConnectError(
        fault.message,
        code,
        { [reasonHeader]: fault.reason },
        undefined,
        fault,
      )
    }
  }
}

async function* watched<T>(
  messages: AsyncIterable<T>,
  toError: (thrown: unknown) => ConnectError,
): AsyncIterable<T> {
  try {
    yield* messages
  } catch (thrown) {
    throw toError(thrown)
  }
}

function codeOfReason(reason: string): Code | undefined {
  if (preconditions.has(reason)) return Code.FailedPrecondition
  if (reason === 'record_unreadable') return Code.DataLoss
  return reason === 'name_gone' ? Code.Aborted : undefined
}

/** Faults that depend on the state of the sandbox, not on the arguments of the request. */
const preconditions = new Set([
  'deleted_file_open',
  'connection_opens',
  'memory_not_kept',
  'memory_unreadable',
  'node_unsuitable',
  'other_runtime',
  'sandbox_evicted',
  staleGeneration,
  wrongNode,
  wrongEpoch,
  'sandbox_stopped',
])
