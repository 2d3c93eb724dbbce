import type { ErrorBody } from '@atoll/contracts/errors'
import type { IncomingMessage, ServerResponse } from 'node:http'

export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void

/** Tracks open requests, so that a shutdown can wait for them and reject new ones. */
export function trackRequests(handle: RequestHandler): {
  readonly handler: RequestHandler
  /** Rejects new requests; resolves once all open requests are answered, or after the limit. */
  drain(limitMs: number): Promise<void>
} {
  const underway = new Set<ServerResponse>()
  const drained = Promise.withResolvers<void>()
  let isDraining = false
  return {
    handler(request, response) {
      if (isDraining) return refuse(response)
      underway.add(response)
      response.once('close', () => {
        underway.delete(response)
        if (isDraining && underway.size === 0) drained.resolve()
      })
      handle(request, response)
    },
    async drain(limitMs) {
      isDraining = true
      if (underway.size === 0) return
      const timer = setTimeout(drained.resolve, limitMs)
      await drained.promise
      clearTimeout(timer)
    },
  }
}

function refuse(response: ServerResponse): void {
  response.setHeader('Connection', 'close')
  response.setHeader('Retry-After', '1')
  sendJson(response, { code: 503, message: 'The server is shutting down; try again in a moment' })
}

/** Sends an error response without the framework. */
export function sendJson(response: ServerResponse, body: ErrorBody): void {
  response.statusCode = body.code
  response.setHeader('Content-Type', 'application/json; charset=utf-8')
  response.end(JSON.stringify(body))
}
