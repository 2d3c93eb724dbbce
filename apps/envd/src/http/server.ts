/**
 * HTTP server of envd. Threats: all requests come from outside the sandbox, or from programs inside that want the
 * rights of another user. Each request passes CORS, access token or signature, user and route, in this order. No
 * request may crash envd, because all processes of the sandbox depend on it.
 */
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import type { SandboxLog } from '../app/log.ts'
import { decideAccess } from '../domain/access/access.ts'
import { checkSignature } from '../domain/access/signature.ts'
import { actingUser, unknownUserMessage } from './access/acting-user.ts'
import { sendError, sendText } from './wire/responses.ts'
import { allowAnyOrigin, sendPreflightResponse, isPreflight } from './wire/cors.ts'
import { badQuery, parseFileQuery } from './files/file-query.ts'
import { handleRest } from './rest-routes.ts'
import type { RestDeps } from './rest-routes.ts'
import type { Rpc, RpcDeps } from './rpc.ts'
import { httpStatusOf } from './wire/http-status.ts'

export interface HttpDeps extends RpcDeps, RestDeps {
  readonly clock: Clock
  readonly log: SandboxLog
}

export function createHttpServer(deps: HttpDeps): Server {
  let loading: Promise<Rpc> | undefined
  // Streams may last for days. Proxies in front keep idle connections for up to 630 s; ours must outlast theirs.
  const options = { requestTimeout: 0, keepAliveTimeout: 640_000 }
  const server = createServer(options, (request, response) => {
    handle(request, response).catch((thrown: unknown) => fail(thrown, response))
  })
  server.once('request', (_, response) => response.once('close', () => void loadRpc()))
  return server

  /**
   * Loads the RPC services lazily, after the first response or on demand: this takes as long as the rest of the
   * startup.
   */
  function loadRpc(): Promise<Rpc> {
    loading ??= import('./rpc.ts').then(({ createRpc }) => createRpc(deps))
    return loading
  }

  async function prepare(): Promise<void> {
    await Promise.all([loadRpc(), deps.prepare()])
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', headers } = request
    const path = request.url?.split('?', 1)[0] ?? ''
    allowAnyOrigin(request, response)
    if (isPreflight(request)) return sendPreflightResponse(request, response)
    const token = headers['x-access-token']?.toString()
    const access = decideAccess(deps.sandbox.settings(), { method, path, token })
    if (access === 'not_ready')
      return sendError(response, 503, 'The sandbox is not ready yet. Retry in a moment.')
    if (access === 'denied') return sendError(response, 401, accessMessage(token))
    if (access === 'needs_signature') requireSignature(request, deps)
    const user = await actingUser(deps.users, headers.authorization)
    const rpc = rpcPath.test(path) ? await loadRpc() : undefined
    if (rpc?.has(path)) return rpc.handle(request, response, { path, user })
    if (user.kind === 'unknown') {
      return sendError(response, 401, unknownUserMessage(user.name), 'unauthenticated')
    }
    return handleRest({ ...deps, prepare }, { request, response, path, acting: user })
  }

  function fail(thrown: unknown, response: ServerResponse): void {
    if (response.socket?.destroyed !== false) return // the client disconnected
    const fault = Fault.from(thrown)
    if (fault !== thrown) deps.report(thrown)
    if (response.headersSent) response.destroy()
    else if (fault.reason === badQuery) sendText(response, 400, fault.message)
    else sendError(response, httpStatusOf(fault), fault.message)
  }
}

function requireSignature({ url = '', method }: IncomingMessage, deps: HttpDeps): void {
  const { path = '', username = '', signature, expiration } = parseFileQuery(url)
  const operation = method === 'POST' ? 'write' : 'read'
  checkSignature(
    { path, username, operation, signature, expiration },
    deps.sandbox.settings()?.accessToken ?? '',
    deps.clock.now(),
  )
}

/** Path of any RPC, such as /process.Process/Start. */
const rpcPath = /^\/\w+\.\w+\/\w+$/

function accessMessage(token: string | undefined): string {
  return token === undefined
    ? 'No access token. Send the access token of the sandbox in the header X-Access-Token.'
    : 'The token in X-Access-Token is wrong. Send the envdAccessToken of this sandbox.'
}
