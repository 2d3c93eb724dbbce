import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'

const lingerMs = 10_000

/**
 * Handles responses sent before the request has been read, such as 413. Closing while the client still sends would
 * reset the connection and could lose the response. So the rest of the body is discarded, for 10 seconds at most,
 * before the connection is closed, if the client asked for that.
 */
export function discardUnreadBodies(server: FastifyInstance): void {
  const toClose = new WeakSet<IncomingMessage>()
  server.addHook('onSend', async (request, reply) => {
    if (request.raw.complete) return
    reply.removeHeader('connection') // Fastify wants to close at once
    if (!reply.raw.shouldKeepAlive) toClose.add(request.raw)
    reply.raw.shouldKeepAlive = true
  })
  server.addHook('onResponse', async ({ raw }) => {
    if (raw.socket.destroyed) return
    const close = () => void (toClose.has(raw) && raw.socket.end())
    if (raw.complete) close()
    else discard(raw, close)
  })
}

function discard(message: IncomingMessage, atEnd: () => void): void {
  const timer = setTimeout(() => message.socket.destroy(), lingerMs)
  timer.unref()
  message.once('end', atEnd)
  for (const event of ['end', 'close']) message.once(event, () => clearTimeout(timer))
  message.resume()
}
