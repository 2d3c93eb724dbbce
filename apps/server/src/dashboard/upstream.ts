import { Agent, request } from 'node:http'
import type {
  ClientRequest,
  IncomingHttpHeaders,
  IncomingMessage,
  OutgoingHttpHeaders,
} from 'node:http'
import { Fault } from '@atoll/kit/fault'

/** Sends requests of the dashboard to the server's own listeners. */
export interface Upstream {
  send(call: UpstreamCall): Promise<IncomingMessage>
  close(): void
}

export interface UpstreamCall {
  readonly method: string
  /** Path with the query. */
  readonly path: string
  readonly headers: OutgoingHttpHeaders
  readonly body?: IncomingMessage | string | undefined
  readonly signal?: AbortSignal | undefined
}

export function createUpstream(baseUrl: string): Upstream {
  const agent = new Agent({ keepAlive: true, maxFreeSockets: 16 })
  const { hostname, port } = new URL(baseUrl)
  const host = hostname.replace(/^\[|\]$/g, '')
  return {
    send: ({ method, path, headers, body, signal }) =>
      new Promise((resolve, reject) => {
        const fail = (cause: unknown) =>
          reject(
            new Fault('unavailable', 'upstream_failed', 'The server did not answer. Try again.', {
              cause,
            }),
          )
        const outgoing = request({ agent, host, port, method, path, headers, signal })
        outgoing.once('response', resolve)
        outgoing.on('error', fail)
        if (typeof body === 'string' || body === undefined) outgoing.end(body)
        else pipeBody(body, outgoing)
      }),
    close: () => agent.destroy(),
  }
}

/** Ends the request to the server when the browser goes away. */
function pipeBody(body: IncomingMessage, outgoing: ClientRequest): void {
  body.once('error', (error) => outgoing.destroy(error))
  body.once('aborted', () => outgoing.destroy(new Error('the browser closed the request')))
  body.pipe(outgoing)
}

/** Returns the headers that describe the body of a browser's request. */
export function bodyHeaders(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  const { 'content-length': length, 'transfer-encoding': encoding } = headers
  if (length !== undefined) return { 'content-length': length }
  return encoding === undefined ? {} : { 'transfer-encoding': 'chunked' }
}

/** Reads a response as text. Everything from a sandbox is hostile, so the size is bounded. */
export async function readBounded(res: IncomingMessage, maxBytes: number): Promise<string> {
  const pieces: Buffer[] = []
  let size = 0
  try {
    for await (const piece of res) {
      size += piece.length
      if (size > maxBytes) break // ends the loop and destroys the stream
      pieces.push(piece)
    }
  } catch (cause) {
    throw new Fault('unavailable', 'upstream_failed', 'The answer broke off. Try again.', { cause })
  }
  if (size > maxBytes) {
    const message = `The answer is larger than ${Math.round(maxBytes / 2 ** 20)} MiB`
    throw new Fault('exhausted', 'answer_too_large', message)
  }
  return Buffer.concat(pieces).toString('utf8')
}
