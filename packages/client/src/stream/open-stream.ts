/**
 * Reads Connect server streams without node:http and mostly without the Connect library, whose layers take longer per
 * message than everything else.
 *
 * Threats: the server may be hostile. Buffers are limited and released when the call ends.
 */
import { Code, ConnectError } from '@connectrpc/connect'
import type { CallOptions } from '@connectrpc/connect'
import { createDeadlineSignal, encodeEnvelope } from '@connectrpc/connect/protocol'
import { requestHeader } from '@connectrpc/connect/protocol-connect'
import { postHttp } from './http-post.ts'
import type { RunningPost } from './http-post.ts'
import { createAsyncQueue } from './async-queue.ts'
import { createMessageReader } from './message-reader.ts'
import { createReadBuffers } from './read-buffers.ts'

export interface StreamedMethod<Request, Message> {
  readonly path: string
  encode(request: Request): Uint8Array
  decode(message: Buffer): Message
}

export interface StreamTarget {
  /** Only `http:` URLs. */
  readonly baseUrl: string
  readonly headers: Readonly<Record<string, string>>
  /** Whether the bytes of a message are valid only until the next message is requested. */
  readonly reusesMemory: boolean
}

/**
 * Starts the call at once. The call ends when the caller leaves the loop over its messages. Failures are
 * `ConnectError`s.
 */
export function openStream<Request, Message extends object>(
  method: StreamedMethod<Request, Message>,
  target: StreamTarget,
  request: Request,
  options: CallOptions = {},
): AsyncIterable<Message> {
  const timeoutMs = (options.timeoutMs ?? 0) > 0 ? options.timeoutMs : undefined
  const deadline = createDeadlineSignal(timeoutMs && Math.min(timeoutMs, longestTimerMs))
  const signal = AbortSignal.any([deadline.signal, ...(options.signal ? [options.signal] : [])])
  const messages = createAsyncQueue<Message>(() => post?.resume())
  const memory = createReadBuffers(target.reusesMemory ? messages.isAwaited : undefined)
  const onMessage = (data: Buffer) => messages.put(method.decode(data))
  const reader = createMessageReader(onMessage, memory, options)
  let waitingBytes = 0
  let post: RunningPost | undefined
  signal.addEventListener('abort', cancel)
  if (signal.aborted) cancel()
  else start()
  return { [Symbol.asyncIterator]: () => ({ next: messages.next, return: onReturn }) }

  function start(): void {
    try {
      const headers = requestHeader('server_streaming', true, timeoutMs, options.headers, true)
      for (const [name, value] of Object.entries(target.headers)) headers.set(name, value)
      const url = new URL(target.baseUrl.replace(/\/+$/, '') + method.path)
      const body = encodeEnvelope(0, method.encode(request))
      const answer = { onHead: reader.readHead, onData, onEnd, onFailure }
      post = postHttp({ url, headers, body, memory }, answer)
    } catch (thrown) {
      onFailure(thrown) // the request cannot be encoded
    }
  }

  function onData(pieces: readonly Buffer[]): boolean {
    if (messages.isAwaited()) waitingBytes = 0
    for (const piece of pieces) {
      reader.read(piece)
      waitingBytes += piece.length
    }
    return messages.isAwaited() || waitingBytes < waitingLimitBytes
  }

  function onEnd(): void {
    finish(reader.finish())
  }

  function onFailure(thrown: unknown): void {
    finish(fromSocket(thrown))
  }

  function cancel(): void {
    post?.close()
    messages.clear()
    finish(ConnectError.from(signal.reason, Code.Canceled))
  }

  async function onReturn(): Promise<IteratorResult<Message, undefined>> {
    post?.close()
    messages.clear()
    finish(undefined)
    return { done: true, value: undefined }
  }

  function finish(failure: ConnectError | undefined): void {
    deadline.cleanup()
    signal.removeEventListener('abort', cancel)
    messages.end(failure)
  }
}

/** Uses the same codes as the Connect library. */
function fromSocket(thrown: unknown): ConnectError {
  const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined
  if (code === 'ECONNRESET' || code === 'EPIPE') return ConnectError.from(thrown, Code.Aborted)
  return ConnectError.from(thrown, unreachable.has(code) ? Code.Unavailable : Code.Internal)
}

const unreachable: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'ETIMEDOUT',
])

/** Timers with a longer delay would fire at once. */
const longestTimerMs = 2 ** 31 - 1

/** Limit on the bytes that are read ahead of the consumer. */
const waitingLimitBytes = 1024 * 1024
