/**
 * Server streams of Connect, read past node:http and mostly past the library, whose layers take longer for each message
 * than all the rest does.
 *
 * Threats: whoever answers may be hostile. What is kept of an answer has limits, and nothing of it outlives the call.
 */
import { Code, ConnectError } from '@connectrpc/connect'
import type { CallOptions } from '@connectrpc/connect'
import { createDeadlineSignal, encodeEnvelope } from '@connectrpc/connect/protocol'
import { requestHeader } from '@connectrpc/connect/protocol-connect'
import { postHttp } from './http-post.ts'
import type { RunningPost } from './http-post.ts'
import { createMailbox } from './mailbox.ts'
import { createMessageReader } from './message-reader.ts'
import { createReadMemory } from './read-memory.ts'

export interface StreamedMethod<Request, Message> {
  readonly path: string
  encode(request: Request): Uint8Array
  decode(message: Buffer): Message
}

export interface StreamTarget {
  /** Of the scheme http. */
  readonly baseUrl: string
  readonly headers: Readonly<Record<string, string>>
  /** Whether the bytes of a message are good only until the next is asked for. */
  readonly reusesMemory: boolean
}

/** The call begins at once, and ends when the loop over its messages is left. Failures are `ConnectError`s. */
export function openStream<Request, Message extends object>(
  method: StreamedMethod<Request, Message>,
  target: StreamTarget,
  request: Request,
  options: CallOptions = {},
): AsyncIterable<Message> {
  const timeoutMs = (options.timeoutMs ?? 0) > 0 ? options.timeoutMs : undefined
  const deadline = createDeadlineSignal(timeoutMs && Math.min(timeoutMs, longestTimerMs))
  const signal = AbortSignal.any([deadline.signal, ...(options.signal ? [options.signal] : [])])
  const messages = createMailbox<Message>(() => post?.resume())
  const memory = createReadMemory(target.reusesMemory ? messages.isAwaited : undefined)
  const onMessage = (data: Buffer) => messages.put(method.decode(data))
  const reader = createMessageReader(onMessage, memory, options)
  let waitingBytes = 0
  let post: RunningPost | undefined
  signal.addEventListener('abort', leave)
  if (signal.aborted) leave()
  else begin()
  return { [Symbol.asyncIterator]: () => ({ next: messages.next, return: returned }) }

  function begin(): void {
    try {
      const headers = requestHeader('server_streaming', true, timeoutMs, options.headers, true)
      for (const [name, value] of Object.entries(target.headers)) headers.set(name, value)
      const url = new URL(target.baseUrl.replace(/\/+$/, '') + method.path)
      const body = encodeEnvelope(0, method.encode(request))
      const answer = { onHead: reader.readHead, onData, onEnd, onFailure }
      post = postHttp({ url, headers, body, memory }, answer)
    } catch (thrown) {
      onFailure(thrown) // a request that cannot be written
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
    settle(reader.finish())
  }

  function onFailure(thrown: unknown): void {
    settle(fromSocket(thrown))
  }

  function leave(): void {
    post?.close()
    messages.clear()
    settle(ConnectError.from(signal.reason, Code.Canceled))
  }

  async function returned(): Promise<IteratorResult<Message, undefined>> {
    post?.close()
    messages.clear()
    settle(undefined)
    return { done: true, value: undefined }
  }

  function settle(failure: ConnectError | undefined): void {
    deadline.cleanup()
    signal.removeEventListener('abort', leave)
    messages.end(failure)
  }
}

/** Codes as those of the library. */
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

/** Longer ones would end at once. */
const longestTimerMs = 2 ** 31 - 1

/** As much is read ahead of whoever takes the messages. */
const waitingLimitBytes = 1024 * 1024
