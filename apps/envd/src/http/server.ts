/**
 * The daemon's HTTP server. Threats: everything that arrives was made by somebody outside the sandbox, or by a program
 * inside it that wants another user's rights. A request climbs this ladder: CORS, access token, user, route. Nothing it
 * holds may end the daemon, since every process of the sandbox hangs on it.
 */
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Fault } from '@atoll/kit/fault'
import { decideAccess } from '../domain/access.ts'
import { actingUser, unknownUserMessage } from './acting-user.ts'
import { answerError, answerText } from './answer.ts'
import { allowAnyOrigin, answerPreflight, isPreflight } from './cors.ts'
import { httpStatus } from './fault.ts'
import { answerInit } from './init.ts'
import { createRpc } from './rpc.ts'
import type { RpcDeps } from './rpc.ts'

export interface HttpDeps extends RpcDeps {
  readonly initToken?: string | undefined
}

export function createHttpServer(deps: HttpDeps): Server {
  const rpc = createRpc(deps)
  // Streams may last for days. Proxies in front keep idle connections for up to 630 s; ours must outlast theirs.
  return createServer({ requestTimeout: 0, keepAliveTimeout: 640_000 }, (request, response) => {
    answer(request, response).catch((thrown: unknown) => fail(thrown, response))
  })

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', headers } = request
    const path = request.url?.split('?', 1)[0] ?? ''
    allowAnyOrigin(request, response)
    if (isPreflight(request)) return answerPreflight(request, response)
    const token = headers['x-access-token']?.toString()
    const access = decideAccess(deps.sandbox.settings(), { method, path, token })
    if (access === 'not_ready') return answerError(response, 503, 'The sandbox is not ready yet')
    if (access === 'denied') return answerError(response, 401, accessMessage(token))
    const user = await actingUser(deps.users, headers.authorization)
    if (rpc.has(path)) return rpc.answer(request, response, { path, user })
    if (user.kind === 'unknown') {
      return answerError(response, 401, unknownUserMessage(user.name), 'unauthenticated')
    }
    return answerRest(request, response, path)
  }

  async function answerRest(
    request: IncomingMessage,
    response: ServerResponse,
    path: string,
  ): Promise<void> {
    const allowed = restRoutes.get(path)
    if (allowed === undefined) return answerText(response, 404, '404 page not found')
    if (request.method !== allowed) {
      response.setHeader('allow', allowed)
      return answerText(response, 405, `Use ${allowed}`)
    }
    if (path === '/init') return answerInit(request, response, deps)
    response.writeHead(204, { 'cache-control': 'no-store' }).end()
  }

  function fail(thrown: unknown, response: ServerResponse): void {
    if (response.socket?.destroyed !== false) return // whoever asked has left, which is no failure of ours
    const fault = Fault.from(thrown)
    if (fault !== thrown) deps.report(thrown)
    if (response.headersSent) response.destroy()
    else answerError(response, httpStatus[fault.kind], fault.message)
  }
}

const restRoutes: ReadonlyMap<string, string> = new Map([
  ['/health', 'GET'],
  ['/init', 'POST'],
])

function accessMessage(token: string | undefined): string {
  return token === undefined
    ? 'Send the access token of the sandbox in the header X-Access-Token'
    : 'The token in X-Access-Token is not that of this sandbox: send its envdAccessToken'
}
