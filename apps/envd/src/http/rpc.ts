/** The Connect services of the daemon as one request listener. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { Process } from '@atoll/contracts/gen/process/process_pb'
import { createContextValues } from '@connectrpc/connect'
import { compressionGzip, connectNodeAdapter } from '@connectrpc/connect-node'
import { answerError } from './answer.ts'
import { faultInterceptor } from './fault.ts'
import type { ReportFailure } from './fault.ts'
import { processService } from './process.ts'
import type { ProcessServiceDeps } from './process.ts'
import { boundedTimeout, checkRpcRequest, timeoutLimitMs } from './rpc-request.ts'
import { actingUserKey, requireKnownUser } from './acting-user.ts'
import type { ActingUser } from './acting-user.ts'

export interface RpcDeps extends ProcessServiceDeps {
  readonly report: ReportFailure
  readonly shutdown: AbortSignal
}

export interface Rpc {
  /** Whether `path` is that of an RPC. */
  has(path: string): boolean
  answer(
    request: IncomingMessage,
    response: ServerResponse,
    call: { readonly path: string; readonly user: ActingUser },
  ): void
}

export function createRpc(deps: RpcDeps): Rpc {
  const methods = new Map(
    Process.methods.map((method) => [`/${Process.typeName}/${method.name}`, method.methodKind]),
  )
  const users = new WeakMap<object, ActingUser>()
  const listener: RequestListener = connectNodeAdapter({
    routes: (router) => void router.service(Process, processService(deps)),
    interceptors: [faultInterceptor(deps.report)],
    requestGate: (context) => requireKnownUser(context.values.get(actingUserKey)),
    contextValues: (request) => {
      const user = users.get(request) ?? { kind: 'default' }
      return createContextValues().set(actingUserKey, user)
    },
    shutdownSignal: deps.shutdown,
    requireConnectProtocolHeader: true,
    acceptCompression: [compressionGzip],
    readMaxBytes: messageLimitBytes,
    maxTimeoutMs: timeoutLimitMs,
  })

  return {
    has: (path) => methods.has(path),
    answer(request, response, { path, user }) {
      const { headers, method } = request
      const refusal = checkRpcRequest(methods.get(path) ?? 'unary', {
        method,
        contentType: headers['content-type'],
        protocolVersion: headers['connect-protocol-version']?.toString(),
      })
      if (refusal) {
        for (const [name, value] of Object.entries(refusal.headers)) response.setHeader(name, value)
        return answerError(response, refusal.status, refusal.message, codes[refusal.status])
      }
      // The adapter makes a URL of the Host header and throws when it is missing or odd. Nothing here needs it.
      headers.host = 'envd'
      const timeout = headers['connect-timeout-ms']
      if (typeof timeout === 'string') headers['connect-timeout-ms'] = boundedTimeout(timeout)
      users.set(request, user)
      listener(request, response)
    },
  }
}

const codes = { 400: 'invalid_argument', 405: 'unimplemented', 415: 'unimplemented' } as const

/**
 * Input arrives base64-coded and in one piece, so this is about 48 MiB of it at once. It exists to bound what a single
 * request can take of the sandbox's memory; clients send input in pieces of 64 KiB.
 */
const messageLimitBytes = 64 * 1024 * 1024
