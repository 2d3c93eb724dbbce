/**
 * Uploads and downloads of any size. Uses node:http, since fetch gives up on an answer after 300 s.
 *
 * Threats: the server may be hostile. The reader of a download bounds what it takes, and texts are limited here.
 */
import { request as requestHttp } from 'node:http'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { request as requestHttps } from 'node:https'
import { Fault } from '@atoll/kit/fault'
import { faultFromSocket } from './http-fault.ts'

export interface TransferBody {
  readonly chunks: AsyncIterable<Uint8Array>
  /** Absent: the length is unknown, and the body is sent in chunks. */
  readonly sizeBytes?: number | undefined
}

export interface TransferRequest {
  readonly method: 'GET' | 'PUT' | 'POST'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: TransferBody | undefined
  readonly signal?: AbortSignal | undefined
}

export interface TransferReply {
  readonly status: number
  readonly sizeBytes: number | undefined
  readonly content: AsyncIterable<Uint8Array>
}

/** Resolves with the head of the answer. The caller reads the content. */
export async function transfer(request: TransferRequest): Promise<TransferReply> {
  const { method, url, headers, body, signal } = request
  const send = url.startsWith('https:') ? requestHttps : requestHttp
  const length = body?.sizeBytes === undefined ? {} : { 'content-length': String(body.sizeBytes) }
  const sending = send(url, {
    method,
    headers: { ...headers, ...length },
    ...(signal && { signal }),
  })
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    sending.once('response', resolve)
    sending.on('error', reject)
  })
  try {
    if (body) void sendBody(sending, body)
    else sending.end()
    const response = await answered
    const announced = Number(response.headers['content-length'] ?? Number.NaN)
    return {
      status: response.statusCode ?? 0,
      sizeBytes: Number.isSafeInteger(announced) ? announced : undefined,
      content: response,
    }
  } catch (thrown) {
    signal?.throwIfAborted()
    if (thrown instanceof Fault) throw thrown
    const origin = new URL(url).origin
    throw faultFromSocket(thrown, origin) ?? transferBroken(origin, thrown)
  }
}

/** Stops at an early answer: a server that refuses an upload does not read the rest. */
async function sendBody(sending: ClientRequest, { chunks }: TransferBody): Promise<void> {
  let isAnswered = false
  sending.once('response', () => (isAnswered = true))
  try {
    for await (const chunk of chunks) {
      if (isAnswered || sending.destroyed) return
      if (!sending.write(chunk)) await untilWritable(sending)
    }
    sending.end()
  } catch (thrown) {
    sending.destroy(thrown instanceof Error ? thrown : new Error(String(thrown)))
  }
}

function untilWritable(sending: ClientRequest): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      for (const event of events) sending.off(event, go)
      resolve()
    }
    const events = ['drain', 'response', 'close'] as const
    for (const event of events) sending.on(event, go)
  })
}

const textLimit = 64 * 1024

/** Reads the start of an answer, for its error message. */
export async function readText({ content }: TransferReply): Promise<string> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of content) {
    pieces.push(piece)
    length += piece.length
    if (length > textLimit) break
  }
  return Buffer.concat(pieces).subarray(0, textLimit).toString()
}

function transferBroken(origin: string, thrown: unknown): Fault {
  const reason = thrown instanceof Error ? thrown.message : String(thrown)
  const message = `The connection to ${origin} failed: ${reason}`
  return new Fault('unavailable', 'broken_exchange', message, { cause: thrown })
}
