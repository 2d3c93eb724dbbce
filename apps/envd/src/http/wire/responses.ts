import type { ServerResponse } from 'node:http'

/** The error body of everything that is not an RPC: `code` repeats the status, or names a Connect code. */
export function sendError(
  response: ServerResponse,
  status: number,
  message: string,
  code: number | string = status,
): void {
  refuse(response, status, 'application/json', JSON.stringify({ code, message }))
}

export function sendText(response: ServerResponse, status: number, text: string): void {
  refuse(response, status, 'text/plain', `${text}\n`)
}

export function sendJson(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' })
  response.end(JSON.stringify(body))
}

/**
 * Closing while the other side still sends its body would reset the connection, and could take our answer with it. So
 * the rest is read for nothing, and it is the other side that closes.
 */
function refuse(response: ServerResponse, status: number, type: string, body: string): void {
  if (!response.req.complete) response.setHeader('connection', 'keep-alive')
  response.writeHead(status, {
    'content-type': `${type}; charset=utf-8`,
    'content-length': Buffer.byteLength(body),
    'x-content-type-options': 'nosniff',
  })
  response.end(body)
}
