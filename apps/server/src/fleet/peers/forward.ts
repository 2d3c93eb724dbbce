/** Serves the node's service on the network: passes each call on to the service in memory. */
import type {
  DescMethod,
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
} from '@bufbuild/protobuf'
import { ConnectError } from '@connectrpc/connect'
import type { ConnectRouter, HandlerContext, Transport } from '@connectrpc/connect'
import { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { epochHeader, nodeHeader, reasonHeader } from '@atoll/contracts/node-faults'

export function forwardNode(router: ConnectRouter, transport: Transport): void {
  // oxlint-disable-next-line typescript/no-unsafe-enum-assignment -- the same enums, compared by the rule within a recursive type
  const { methods }: DescService = NodeService
  for (const method of methods) {
    if (isUnary(method)) {
      router.rpc(method, async (input, context) => {
        const header = addresseeOf(context)
        const call = transport.unary(method, context.signal, undefined, header, input)
        return (await call.catch(withReason)).message
      })
    } else if (isServerStreaming(method)) {
      router.rpc(method, async function* (input, context) {
        const header = addresseeOf(context)
        try {
          const { signal } = context
          const reply = await transport.stream(method, signal, undefined, header, only(input))
          yield* reply.message
        } catch (error) {
          withReason(error)
        }
      })
    } else if (isClientStreaming(method)) {
      router.rpc(method, async (input, context) => {
        const header = addresseeOf(context)
        try {
          const reply = await transport.stream(method, context.signal, undefined, header, input)
          for await (const message of reply.message) return message
        } catch (error) {
          withReason(error)
        }
        throw new Error(`${method.name} gave no answer`)
      })
    }
  }
}

/** The node checks for whom a call is meant. */
function addresseeOf({ requestHeader }: HandlerContext): Headers {
  const headers = new Headers()
  for (const name of [nodeHeader, epochHeader]) {
    const value = requestHeader.get(name)
    if (value !== null) headers.set(name, value)
  }
  return headers
}

/** Rethrows an error of the node with its reason: errors that were read from a transport are sent on without their headers. */
function withReason(error: unknown): never {
  const { rawMessage, code, metadata } = ConnectError.from(error)
  const reason = metadata.get(reasonHeader)
  if (reason === null) throw error
  throw new ConnectError(rawMessage, code, { [reasonHeader]: reason }, undefined, error)
}

async function* only<T>(message: T): AsyncGenerator<T> {
  yield message
}

function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === 'unary'
}

function isServerStreaming(method: DescMethod): method is DescMethodServerStreaming {
  return method.methodKind === 'server_streaming'
}

function isClientStreaming(method: DescMethod): method is DescMethodClientStreaming {
  return method.methodKind === 'client_streaming'
}
