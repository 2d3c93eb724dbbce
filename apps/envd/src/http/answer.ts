import type { ServerResponse } from 'node:http'

/** The error body of everything that is not an RPC: `code` repeats the status, or names a Connect code. */
export function answerError(
  response: ServerResponse,
  status: number,
  message: string,
  code: number | string = status,
): void {
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'x-content-type-options': 'nosniff',
  })
  response.end(JSON.stringify({ code, message }))
}

export function answerText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    'content-type': 'text/plain; charset=utf-8',
    'x-content-type-options': 'nosniff',
  })
  response.end(`${text}\n`)
}
