/** Request handler of the Connect services. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Filesystem } from '@atoll/contracts/gen/filesystem/filesystem_pb'
import { Process } from '@atoll/contracts/gen/process/process_pb'
import { createConnectRouter, createContextValues } from '@connectrpc/connect'
import {
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from '@connectrpc/connect-node'
import { assertByteStreamRequest } from '@connectrpc/connect/protocol'
import type {
  UniversalHandler,
  UniversalServerRequest,
  UniversalServerResponse,
} from '@connectrpc/connect/protocol'
import { sendError, sendText } from './wire/responses.ts'
import { rejectUnknownFlags } from './wire/envelope-flags.ts'
import { faultInterceptor } from './wire/fault-interceptor.ts'
import type { ReportFailure } from './wire/fault-interceptor.ts'
import { filesystemService } from './files/filesystem-service.ts'
import type { FilesystemServiceDeps } from './files/filesystem-service.ts'
import { createMessageBudget, tooMuchInput } from './wire/message-budget.ts'
import type { MessageBudget } from './wire/message-budget.ts'
import { createOutputFrames, outputFramesKey } from './process/output-frames.ts'
import { processService } from './process/process-service.ts'
import type { ProcessServiceDeps } from './process/process-service.ts'
import { boundedTimeout, checkRpcRequest, timeoutLimitMs } from './wire/rpc-request.ts'
import { actingUserKey, requireKnownUser } from './access/rpc-user.ts'
import type { ActingUser } from './access/acting-user.ts'

export interface RpcDeps extends ProcessServiceDeps, FilesystemServiceDeps {
  readonly report: ReportFailure
  readonly shutdown: AbortSignal
}

export interface Rpc {
  /** Whether `path` belongs to an RPC. */
  has(path: string): boolean
  handle(
    request: IncomingMessage,
    response: ServerResponse,
    call: { readonly path: string; readonly user: ActingUser },
  ): Promise<void>
}

export function createRpc(deps: RpcDeps): Rpc {
  const router = createConnectRouter({
    interceptors: [faultInterceptor(deps.report)],
    requestGate: (context) => requireKnownUser(context.values.get(actingUserKey)),
    shutdownSignal: deps.shutdown,
    requireConnectProtocolHeader: true,
    acceptCompression: [boundedGzip],
    readMaxBytes: messageLimitBytes,
    maxTimeoutMs: timeoutLimitMs,
  })
  const processes = processService(deps)
  router.service(Process, processes)
  router.rpc(Process.method.sendInput, processes.sendInput, { readMaxBytes: inputLimitBytes })
  router.service(Filesystem, filesystemService(deps))
  const budget = createMessageBudget(inputLimitBytes, smallMessageBytes)
  // The later handler of a path wins.
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]))

  return {
    has: (path) => handlers.has(path),
    async handle(request, response, { path, user }) {
      const handler = handlers.get(path)
      if (!handler) return sendText(response, 404, '404 page not found')
      const { headers, method } = request
      const refusal = checkRpcRequest(handler.method.methodKind, {
        method,
        contentType: headers['content-type'],
        protocolVersion: headers['connect-protocol-version']?.toString(),
      })
      if (refusal) {
        for (const [name, value] of Object.entries(refusal.headers)) response.setHeader(name, value)
        return sendError(response, refusal.status, refusal.message, connectCodes[refusal.status])
      }
      // The library builds a URL from the Host header and fails if it is missing or malformed. Nothing here uses
      // it.
      headers.host = 'envd'
      const timeout = headers['connect-timeout-ms']
      if (typeof timeout === 'string') headers['connect-timeout-ms'] = boundedTimeout(timeout)
      const output = createOutputFrames(headers['content-type'], response)
      const values = createContextValues().set(actingUserKey, user).set(outputFramesKey, output)
      const call = universalRequestFromNodeRequest(request, response, undefined, values)
      const universalResponse = await withinBudget(budget, handler, call)
      if (!universalResponse) return sendError(response, 429, tooMuchInput, connectCodes[429])
      const reply = await reportAsClientError(universalResponse)
      await universalResponseToNodeResponse(reply, response)
    },
  }
}

/**
 * Returns undefined if the message exceeds the budget. Streams are exempt, because they read one small message at
 * a time.
 */
async function withinBudget(
  budget: MessageBudget,
  handler: UniversalHandler,
  call: UniversalServerRequest,
) {
  assertByteStreamRequest(call)
  if (handler.method.methodKind !== 'unary') {
    return handler({ ...call, body: rejectUnknownFlags(call.body) })
  }
  const header = call.header.get('content-length')
  const declared = header === null ? undefined : Number(header)
  const isInput = handler.method === Process.method.sendInput
  // The library would reject the message too, but closes the connection before the client gets the error.
  if ((declared ?? 0) > (isInput ? inputLimitBytes : messageLimitBytes)) return undefined
  const admission = budget.admit(call.body, declared)
  if (!admission) return undefined
  try {
    return await handler({ ...call, body: admission.body })
  } finally {
    admission.release()
  }
}

/** Reports a malformed protobuf message as the client's error. The library responds with 500. */
async function reportAsClientError(
  response: UniversalServerResponse,
): Promise<UniversalServerResponse> {
  if (response.status !== 500 || !response.body) return response
  const [bytes = new Uint8Array()] = await Array.fromAsync(response.body)
  const text = new TextDecoder().decode(bytes)
  if (!text.startsWith(parseFailure)) return { ...response, body: singleChunk(bytes) }
  const refused = new TextEncoder().encode(text.replace('"internal"', '"invalid_argument"'))
  const header = new Headers(response.header)
  header.set('content-length', String(refused.length))
  return { ...response, status: 400, header, body: singleChunk(refused) }
}

const parseFailure = '{"code":"internal","message":"parse binary'

async function* singleChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

const connectCodes = {
  400: 'invalid_argument',
  405: 'unimplemented',
  415: 'unimplemented',
  429: 'resource_exhausted',
} as const

/** Exceeds the largest valid message without input: the kernel accepts 2 MiB of arguments and variables. */
const messageLimitBytes = 4 * 1024 * 1024

/** Input is base64-encoded and may come in one message, so this allows about 48 MiB at once. */
const inputLimitBytes = 64 * 1024 * 1024

/** Clients that split input send no larger chunks. */
const smallMessageBytes = 128 * 1024

/** Bounds decompression: a message can grow a thousandfold. Published clients never compress. */
const boundedGzip: typeof compressionGzip = {
  ...compressionGzip,
  decompress: (bytes, limit) =>
    compressionGzip.decompress(bytes, Math.min(limit, messageLimitBytes)),
}
