import { randomUUID } from 'node:crypto'
import type { Operation } from '@atoll/contracts/operation'
import type { Logger } from '@atoll/kit/log'
import { fastify } from 'fastify'
import type { FastifyInstance } from 'fastify'
import { addCors } from './cors.ts'
import { bodyLimitBytes, logLevelOf, toFailure } from './errors.ts'
import { noteError, toRecord } from './request-record.ts'
import type { OnRequest } from './request-record.ts'
import { toUrl } from './route.ts'
import { sendJson } from './track.ts'
import { discardUnreadBodies } from './unread-body.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Operation ID of the route, for the log. */
    operation?: string
  }
}

/** Creates the HTTP server without routes: body parsing, error responses, one log line per request. */
export function createServer(log: Logger, onRequest?: OnRequest): FastifyInstance {
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
  // Disable caching: many responses contain tokens.
  server.addHook('onRequest', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
  })
  acceptJson(server)
  discardUnreadBodies(server)
  server.setErrorHandler((error, request, reply) => {
    noteError(request, error)
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
    const record = toRecord(request, reply)
    const { operation: event = 'http.other', durationMs, ...facts } = record
    log.info(
      { event, ...facts, durationMs: Math.round(durationMs), requestId: request.id },
      'request',
    )
    onRequest?.(record)
  })
  return server
}

/** Accepts empty JSON bodies: clients send `Content-Type: application/json` even without a body. */
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

/** Responds with 405 instead of 404 when the path exists but the method does not. */
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
      // Reject before the body is read.
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
