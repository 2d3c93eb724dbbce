import type { ServerResponse } from 'node:http'

/** Error body of all endpoints other than RPCs: `code` is the HTTP status or a Connect code. */
export function sendError(
  response: ServerResponse,
  status: number,
  message: string,
  code: number | string = status,
): void {
  respond(response, status, 'application/json', JSON.stringify({ code, message }))
}

export function sendText(response: ServerResponse, status: number, text: string): void {
  respond(response, status, 'text/plain', `${text}\n`)
}

export function sendJson(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' })
  response.end(JSON.stringify(body))
}

/**
 * Keeps the connection open until the client has sent its body. Closing earlier would reset the connection, and the
 * client might lose the response.
 */
function respond(response: ServerResponse, status: number, type: string, body: string): void {
  if (!response.req.complete) response.setHeader('connection', 'keep-alive')
  response.writeHead(status, {
    'content-type': `${type}; charset=utf-8`,
    'content-length': Buffer.byteLength(body),
    'x-content-type-options': 'nosniff',
  })
  response.end(body)
}
