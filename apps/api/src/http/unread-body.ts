import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'

const lingerMs = 10_000

/**
 * For answers that come before the end of the request, such as that it is too large. Closing while the client still
 * sends would reset the connection and could take the answer with it. So what it sends is thrown away until it stops,
 * but not for ever.
 */
export function discardUnreadBodies(server: FastifyInstance): void {
  server.addHook('onSend', async (request, reply) => {
    if (!request.raw.complete) reply.removeHeader('connection') // the framework's wish to close at once
  })
  server.addHook('onResponse', async (request) => {
    if (!request.raw.complete && !request.raw.socket.destroyed) discard(request.raw)
  })
}

function discard(message: IncomingMessage): void {
  const timer = setTimeout(() => message.socket.destroy(), lingerMs)
  timer.unref()
  for (const event of ['end', 'close']) message.once(event, () => clearTimeout(timer))
  message.resume()
}
