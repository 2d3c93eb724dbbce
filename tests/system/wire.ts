/** Plain HTTP and Connect framing, so that no client library hides what is on the wire. */
import { once } from 'node:events'
import { request } from 'node:http'
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'

export interface Call {
  readonly method?: string
  /** Sent unchanged: dots and escapes are not resolved. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

export interface Reply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  readonly text: string
  /** Parsed body, if it is JSON. */
  readonly json: unknown
}

/** Sends a request and reads the whole response. */
export async function send(url: string, call: Call): Promise<Reply> {
  const response = await open(url, call)
  const body = Buffer.concat(await Array.fromAsync(response))
  const text = body.toString('utf8')
  const { statusCode: status = 0, headers } = response
  return { status, headers, body, text, json: parse(text) }
}

/** Sends a request; resolves when the response headers arrive. */
export async function open(url: string, call: Call): Promise<IncomingMessage> {
  const outgoing = startRequest(url, call)
  const response = waitForResponse(outgoing)
  outgoing.end(call.body)
  return response
}

/** Starts a request; the caller writes the body. */
export function startRequest(
  url: string,
  { method = 'GET', path, headers = {} }: Call,
): ClientRequest {
  const { hostname, port } = new URL(url)
  // No connection reuse: a broken connection must not affect the next test.
  return request({ hostname, port, method, path, headers, agent: false })
}

export async function waitForResponse(outgoing: ClientRequest): Promise<IncomingMessage> {
  const [response]: IncomingMessage[] = await once(outgoing, 'response')
  if (!response) throw new Error('the request emitted no response')
  outgoing.on('error', () => {}) // later errors reach the reader of the response
  return response
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Connect frame: flags, length, payload. */
export interface Frame {
  readonly flags: number
  readonly payload: Buffer
}

export const endFlag = 2

export function frame(payload: string | Uint8Array, flags = 0): Buffer {
  const bytes = Buffer.from(payload)
  const head = Buffer.alloc(5)
  head.writeUInt8(flags)
  head.writeUInt32BE(bytes.length, 1)
  return Buffer.concat([head, bytes])
}

/** Yields frames as they arrive. */
export async function* framesOf(
  response: AsyncIterable<Buffer> | Iterable<Buffer>,
): AsyncGenerator<Frame> {
  let buffered = Buffer.alloc(0)
  for await (const chunk of response) {
    buffered = Buffer.concat([buffered, chunk])
    while (buffered.length >= 5 && buffered.length >= 5 + buffered.readUInt32BE(1)) {
      const end = 5 + buffered.readUInt32BE(1)
      yield { flags: buffered.readUInt8(0), payload: buffered.subarray(5, end) }
      buffered = buffered.subarray(end)
    }
  }
  if (buffered.length > 0)
    throw new Error(`the last frame is cut short: ${buffered.toString('hex')}`)
}

/** Content of a JSON frame, including the end frame. */
export interface Message {
  readonly event?: {
    readonly start?: { readonly pid: number }
    readonly data?: { readonly stdout?: string; readonly stderr?: string; readonly pty?: string }
    readonly end?: {
      readonly exitCode?: number
      readonly exited?: boolean
      readonly status: string
      readonly error?: string
    }
    readonly keepalive?: object
  }
  readonly error?: { readonly code: string; readonly message?: string }
}

export async function* messagesOf(
  response: AsyncIterable<Buffer>,
): AsyncGenerator<Message & { readonly flags: number }> {
  for await (const { flags, payload } of framesOf(response)) {
    const message: Message = JSON.parse(payload.toString('utf8'))
    yield { ...message, flags }
  }
}

export function basic(user: string): string {
  return `Basic ${Buffer.from(`${user}:`).toString('base64')}`
}
