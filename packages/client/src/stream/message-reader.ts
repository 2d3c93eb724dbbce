/** Decodes the messages of a Connect server stream from an HTTP response: head, envelopes and end of stream. */
import { Code, ConnectError } from '@connectrpc/connect'
import type { CallOptions } from '@connectrpc/connect'
import { compressedFlag } from '@connectrpc/connect/protocol'
import {
  endStreamFlag,
  endStreamFromJson,
  validateResponseWithCompression,
} from '@connectrpc/connect/protocol-connect'
import type { ResponseHead } from './response-head.ts'
import { createEnvelopeReader } from './envelopes.ts'
import type { ReadBuffers } from './read-buffers.ts'

/** Failures are `ConnectError`s: the server's own, or a protocol error. */
export interface MessageReader {
  readHead(head: ResponseHead): void
  read(piece: Buffer): void
  /** Call at the end of the response. Returns an error if the stream is incomplete. */
  finish(): ConnectError | undefined
}

export function createMessageReader(
  onMessage: (data: Buffer) => void,
  memory: Pick<ReadBuffers, 'allocate'>,
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
        if (isEnded) throw broken('data after the end of the stream')
        if ((flags & compressedFlag) !== 0)
          throw broken('a message is compressed although compression was not requested')
        if ((flags & endStreamFlag) === 0) onMessage(data)
        else readEnd(data)
      }
    },
    finish: () =>
      isEnded ? undefined : broken('the stream ended without an end-of-stream message'),
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

/** Far more than any message needs: output arrives in pieces of 32 KiB. */
const messageLimitBytes = 4 * 1024 * 1024
