import { randomUUID } from 'node:crypto'
import type { Operation } from '@atoll/contracts/operation'
import type { Logger } from '@atoll/kit/log'
import { fastify } from 'fastify'
import type { FastifyInstance } from 'fastify'
import { addCors } from './cors.ts'
import { bodyLimitBytes, logLevelOf, toFailure } from './errors.ts'
import { toUrl } from './route.ts'
import { sendJson } from './track.ts'
import { discardUnreadBodies } from './unread-body.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The operation that a route belongs to, for the log. */
    operation?: string
  }
}

/** The HTTP server without its routes: reading of bodies, refusals, one log line per request. */
export function createServer(log: Logger): FastifyInstance {
  const server = fastify({
    logger: false,
    bodyLimit: bodyLimitBytes,
    genReqId: () => randomUUID(),
    routerOptions: { maxParamLength: 1024 },
    frameworkErrors(error, request, reply) {
      const { body } = toFailure(error, request.id)
      sendJson(reply.raw, body)
    },
  })
  addCors(server)
  // Many answers carry tokens, and none is worth a cache.
  server.addHook('onRequest', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
  })
  acceptJson(server)
  discardUnreadBodies(server)
  server.setErrorHandler((error, request, reply) => {
    const failure = toFailure(error, request.id)
    const { body, cause } = failure
    if (cause !== undefined) {
      log[logLevelOf(failure)]({ err: cause, requestId: request.id }, body.message)
    }
    if (body.code === 503) reply.header('retry-after', '1')
    return reply.code(body.code).send(body)
  })
  server.setNotFoundHandler((request, reply) => {
    const message = `There is no ${request.method} ${pathOf(request.url)}; GET /openapi.json lists the operations`
    return reply.code(404).send({ code: 404, message })
  })
  server.addHook('onResponse', async (request, reply) => {
    const event = request.routeOptions.config.operation ?? 'http.other'
    const durationMs = Math.round(reply.elapsedTime)
    log.info({ event, status: reply.statusCode, durationMs, requestId: request.id }, 'request')
  })
  return server
}

/** Clients send `Content-Type: application/json` also where they send no body at all. */
function acceptJson(server: FastifyInstance): void {
  const parseJson = server.getDefaultJsonParser('error', 'error')
  server.removeAllContentTypeParsers()
  server.addContentTypeParser(
    'application/json',
    { parseAs: 'string' },
    (request, body: string, done) => {
      if (body.length === 0) done(null, undefined)
      else void parseJson(request, body, done)
    },
  )
}

/** A known path with the wrong method is told apart from an unknown one. */
export function refuseOtherMethods(
  server: FastifyInstance,
  operations: readonly Operation[],
): void {
  for (const [url, group] of Map.groupBy(operations, toUrl)) {
    const served = group.flatMap(({ method }) => (method === 'GET' ? [method, 'HEAD'] : [method]))
    const others = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'].filter(
      (method) => !served.includes(method),
    )
    const allow = served.join(', ')
    server.route({
      method: others,
      url,
      exposeHeadRoute: false,
      // At once, so that a body need not be read first.
      async onRequest(request, reply) {
        const message = `${request.method} is not possible on ${pathOf(request.url)}: use ${allow}`
        return reply.code(405).header('allow', allow).send({ code: 405, message })
      },
      handler: (_request, reply) => reply,
    })
  }
}

function pathOf(url: string): string {
  return url.replace(/\?.*$/s, '').slice(0, 200)
}
