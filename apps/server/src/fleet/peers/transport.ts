import { Code, ConnectError } from '@connectrpc/connect'
import type { Interceptor, Transport } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { protocolHeader, protocolVersion } from '@atoll/contracts/fleet'
import { baseUrl, createPeerSession } from './session.ts'
import type { PeerSessionOptions } from './session.ts'

export interface PeerTransport {
  readonly transport: Transport
  close(): void
}

export function connectPeer(options: PeerSessionOptions): PeerTransport {
  const session = createPeerSession(options)
  const transport = createConnectTransport({
    httpVersion: '2',
    baseUrl,
    sessionManager: session,
    interceptors: [reportLoss, nameProtocol],
    acceptCompression: [],
  })
  return { transport, close: session.close }
}

const nameProtocol: Interceptor = (next) => (request) => {
  request.header.set(protocolHeader, String(protocolVersion))
  return next(request)
}

/** A session that breaks cancels its streams. Callers must see that the peer is gone, not that they gave up themselves. */
const reportLoss: Interceptor = (next) => async (request) => {
  const toLoss = (error: unknown): unknown => {
    const { code, cause, rawMessage } = ConnectError.from(error)
    const isBroken = code === Code.Canceled || isSystemError(cause)
    if (!isBroken || request.signal.aborted) return error
    const message = `the connection to the peer broke: ${rawMessage}`
    return new ConnectError(message, Code.Unavailable, undefined, undefined, error)
  }
  try {
    const response = await next(request)
    return response.stream ? { ...response, message: follow(response.message, toLoss) } : response
  } catch (error) {
    throw toLoss(error)
  }
}

async function* follow<T>(
  messages: AsyncIterable<T>,
  toLoss: (error: unknown) => unknown,
): AsyncGenerator<T> {
  try {
    yield* messages
  } catch (error) {
    throw toLoss(error)
  }
}

function isSystemError(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && /^E[A-Z]/.test(String(cause.code))
}
