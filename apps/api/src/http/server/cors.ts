import type { FastifyInstance } from 'fastify'

const requestHeaders = [
  'Origin',
  'Content-Length',
  'Content-Type',
  'User-Agent',
  'Authorization',
  'X-API-Key',
  'X-Team-ID',
  'browser',
  'lang',
  'lang_version',
  'machine',
  'os',
  'package_version',
  'processor',
  'publisher',
  'release',
  'sdk_runtime',
  'system',
]

const responseHeaders = [
  'X-Next-Token',
  'X-Total-Running',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'Retry-After',
]

/** Allows every origin: credentials are headers that a page must already have, never cookies. */
export function addCors(server: FastifyInstance): void {
  server.addHook('onRequest', async (_request, reply) => {
    reply.header('access-control-allow-origin', '*')
    reply.header('access-control-expose-headers', responseHeaders.join(', '))
  })
  server.options('*', async (_request, reply) =>
    reply
      .code(204)
      .header('access-control-allow-methods', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS')
      .header('access-control-allow-headers', requestHeaders.join(', '))
      .header('access-control-max-age', '43200')
      .send(),
  )
}
