/** Reads the messages of a Connect server stream out of an HTTP answer: what its head, its envelopes and its end mean. */
import { Code, ConnectError } from '@connectrpc/connect'
import type { CallOptions } from '@connectrpc/connect'
import { compressedFlag } from '@connectrpc/connect/protocol'
import {
  endStreamFlag,
  endStreamFromJson,
  validateResponseWithCompression,
} from '@connectrpc/connect/protocol-connect'
import type { AnswerHead } from './answer-head.ts'
import { createEnvelopeReader } from './envelopes.ts'
import type { ReadMemory } from './read-memory.ts'

/** Failures are `ConnectError`s: the server's own, or one that says what it did wrong. */
export interface MessageReader {
  readHead(head: AnswerHead): void
  read(piece: Buffer): void
  /** The answer is over: why too early, if it is. */
  finish(): ConnectError | undefined
}

export function createMessageReader(
  onMessage: (data: Buffer) => void,
  memory: Pick<ReadMemory, 'apart'>,
  { onHeader, onTrailer }: Pick<CallOptions, 'onHeader' | 'onTrailer'>,
): MessageReader {
  const envelopes = createEnvelopeReader(messageLimitBytes, memory)
  let headers = new Headers()
  let isEnded = false
  return {
    readHead(head) {
      headers = head.headers
      validateResponseWithCompression('server_streaming', [], true, head.status, headers)
      onHeader?.(headers)
    },
    read(piece) {
      for (const { flags, data } of envelopes.read(piece)) {
        if (isEnded) throw broken('something follows the end of the stream')
        if ((flags & compressedFlag) !== 0) throw broken('a message is compressed, unasked')
        if ((flags & endStreamFlag) === 0) onMessage(data)
        else readEnd(data)
      }
    },
    finish: () => (isEnded ? undefined : broken('the stream has no end')),
  }

  function readEnd(data: Buffer): void {
    isEnded = true
    const { error, metadata } = endStreamFromJson(data)
    if (error) {
      for (const [name, value] of headers) error.metadata.append(name, value)
      throw error
    }
    onTrailer?.(metadata)
  }
}

function broken(how: string): ConnectError {
  return new ConnectError(`protocol error: ${how}`, Code.InvalidArgument)
}

/** Far more than any message takes: output comes in pieces of 32 KiB. */
const messageLimitBytes = 4 * 1024 * 1024
