import type { ServerResponse } from 'node:http'

/** The error body of everything that is not an RPC: `code` repeats the status, or names a Connect code. */
export function answerError(
  response: ServerResponse,
  status: number,
  message: string,
  code: number | string = status,
): void {
  stayForTheRest(response)
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'x-content-type-options': 'nosniff',
  })
  response.end(JSON.stringify({ code, message }))
}

export function answerText(response: ServerResponse, status: number, text: string): void {
  stayForTheRest(response)
  response.writeHead(status, {
    'content-type': 'text/plain; charset=utf-8',
    'x-content-type-options': 'nosniff',
  })
  response.end(`${text}\n`)
}

export function answerJson(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' })
  response.end(JSON.stringify(body))
}

/**
 * Closing while the other side still sends its body would reset the connection, and could take our answer with it. So
 * the rest is read for nothing, and it is the other side that closes.
 */
function stayForTheRest(response: ServerResponse): void {
  if (!response.req.complete) response.setHeader('connection', 'keep-alive')
}
