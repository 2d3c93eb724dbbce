/**
 * Takes the body of a response off its socket before node:http reads it, which would copy each chunk to new memory and
 * pass it through two streams. Heads and trailers still go to the parser of node:http, which also frames the response
 * to the client.
 *
 * Threats: the bytes come from a sandbox. If this code and the parser disagree about the end of a head, only the body of
 * that response changes. Read buffers are reused, but never before the kernel has sent their content.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { OnReadOpts, Socket } from 'node:net'
import { createChunkedBody, createCountedBody } from '@atoll/kit/http/body-framing'
import { createBufferedOutput } from './buffered-output.ts'
import { borrowBuffer, sharedBuffer } from './read-buffers.ts'

export interface BodyTap {
  /** Read options for the creation of the socket. */
  readonly onread: (socket: () => Socket) => OnReadOpts
  /** Called after an informational response: another head follows. */
  expectHead(): void
  /** Forwards the body. `onComplete` is called after the last byte of a body with a known length. */
  forwardBody(incoming: IncomingMessage, res: ServerResponse, onComplete: () => void): void
  /** Gives all further input to the parser. */
  detach(): void
}

/** Returns whether to continue reading. `owner` is the buffer of the chunk if it must stay unchanged until it is sent. */
type Reader = (chunk: Buffer, owner: Buffer | undefined) => boolean

export function createBodyTap(onBroken: () => void): BodyTap {
  let socketOf: () => Socket
  let read: Reader = readHead
  let headTail = ''
  let heldInput: Buffer | undefined
  let isParsing = false
  const output = createBufferedOutput(() => socketOf().resume())

  return {
    onread(socket) {
      socketOf = socket
      return {
        buffer: output.readBuffer,
        callback(length) {
          const buffer = output.readBuffer()
          const chunk = buffer.subarray(0, length)
          return buffer === sharedBuffer ? read(Buffer.from(chunk), undefined) : read(chunk, buffer)
        },
      }
    },
    expectHead: () => switchTo(readHead),
    detach: () => switchTo(parse),
    forwardBody(incoming, res, onComplete) {
      socketOf().once('close', () => output.useBuffer(sharedBuffer))
      incoming.resume() // delivers no body, but may emit `end`
      switchTo(bodyReader(incoming, res, onComplete))
    },
  }

  /** Reads up to the end of the head, then waits until the parser has emitted it, often within the same call. */
  function readHead(chunk: Buffer): boolean {
    const text = headTail + chunk.toString('latin1')
    const found = text.indexOf(headerEnd)
    if (found === -1) {
      headTail = text.slice(1 - headerEnd.length)
      return parse(chunk)
    }
    const end = found + headerEnd.length - headTail.length
    headTail = ''
    heldInput = chunk.subarray(end)
    read = wait
    isParsing = true
    parse(chunk.subarray(0, end))
    isParsing = false
    return read !== wait && readHeldInput()
  }

  /** Keeps input that arrives although reading is paused: other code may resume the socket. */
  function wait(chunk: Buffer): boolean {
    heldInput = Buffer.concat([heldInput ?? empty, chunk])
    return false
  }

  function parse(chunk: Buffer, owner?: Buffer): boolean {
    return socketOf().push(owner ? Buffer.from(chunk) : chunk)
  }

  function switchTo(next: Reader): void {
    read = next
    if (!isParsing && readHeldInput()) socketOf().resume()
  }

  function readHeldInput(): boolean {
    const chunk = heldInput
    heldInput = undefined
    return chunk === undefined || chunk.length === 0 || read(chunk, undefined)
  }

  function bodyReader(
    { headers }: IncomingMessage,
    res: ServerResponse,
    onComplete: () => void,
  ): Reader {
    const length = headers['content-length']
    const isChunked = headers['transfer-encoding'] !== undefined
    const framing = isChunked ? createChunkedBody() : createCountedBody(Number(length ?? Infinity))
    return (chunk, owner) => {
      const body = framing.read(chunk)
      if (!body) {
        onBroken()
        return false
      }
      const isSent = output.send(res, body.data, owner)
      if (owner && isSent && chunk.length < largeReadBytes) output.useBuffer(sharedBuffer)
      if (!owner && chunk.length >= largeReadBytes) output.useBuffer(borrowBuffer())
      if (body.rest === undefined) return isSent
      read = isChunked ? parse : ignore
      if (isChunked) return parse(Buffer.concat([lastChunk, body.rest]))
      onComplete()
      return false
    }
  }
}

const ignore: Reader = () => false

const empty = Buffer.alloc(0)
const headerEnd = '\r\n\r\n'
const lastChunk = Buffer.from('0\r\n')

/** A read of this size suggests that more data follows. */
const largeReadBytes = 16 * 1024
