/**
 * Takes the body of an answer off its connection before node:http sees it, which would copy each piece to fresh memory
 * and pass it through two streams. Heads and trailers still go to its parser, and what is sent to the client is still
 * framed by it.
 *
 * Threats: the bytes are a sandbox's. Should our idea of where a head ends differ from the parser's, only the body of that
 * one answer could be another. The memory they are read into is used again, so never before the system has sent it.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { OnReadOpts, Socket } from 'node:net'
import { createChunkedBody, createCountedBody } from '@atoll/kit/http/body-framing'
import { borrowBuffer, returnBuffer, sharedBuffer } from './read-buffers.ts'

export interface Tap {
  /** How the socket is to be read, which must be said when it is made. */
  readonly onread: (socket: () => Socket) => OnReadOpts
  /** The last head was a hint only, another one follows. */
  expectHead(): void
  /** Passes the body on. `onWhole` is called after the last byte of one whose length was told. */
  passBody(incoming: IncomingMessage, res: ServerResponse, onWhole: () => void): void
  /** Leaves all that follows to the parser. */
  leave(): void
}

/** Answers whether to go on reading. `owner` is the memory that the piece lies in, if it must be kept until it is sent. */
type Reader = (piece: Buffer, owner: Buffer | undefined) => boolean

export function createTap(onBroken: () => void): Tap {
  let socketOf: () => Socket
  let buffer: Buffer = sharedBuffer
  let read: Reader = readHead
  let lastOfHead = ''
  let afterHead: Buffer | undefined
  let isParsing = false
  let unsent = 0

  return {
    onread(socket) {
      socketOf = socket
      return {
        buffer: () => buffer,
        callback(length) {
          const piece = buffer.subarray(0, length)
          return buffer === sharedBuffer ? read(Buffer.from(piece), undefined) : read(piece, buffer)
        },
      }
    },
    expectHead: () => goOn(readHead),
    leave: () => goOn(parse),
    passBody(incoming, res, onWhole) {
      socketOf().once('close', () => choose(sharedBuffer))
      incoming.resume() // of the body nothing comes this way, but its end may
      goOn(bodyReader(incoming, res, onWhole))
    },
  }

  /** Up to its end, and no further until the parser has told what it means: often it does so within the call. */
  function readHead(piece: Buffer): boolean {
    const text = lastOfHead + piece.toString('latin1')
    const found = text.indexOf(endOfHead)
    if (found === -1) {
      lastOfHead = text.slice(1 - endOfHead.length)
      return parse(piece)
    }
    const end = found + endOfHead.length - lastOfHead.length
    lastOfHead = ''
    afterHead = piece.subarray(end)
    read = wait
    isParsing = true
    parse(piece.subarray(0, end))
    isParsing = false
    return read !== wait && readRest()
  }

  /** Reading was stopped, but a socket may be made to read by others than us. */
  function wait(piece: Buffer): boolean {
    afterHead = Buffer.concat([afterHead ?? empty, piece])
    return false
  }

  function parse(piece: Buffer, owner?: Buffer): boolean {
    return socketOf().push(owner ? Buffer.from(piece) : piece)
  }

  function goOn(next: Reader): void {
    read = next
    if (!isParsing && readRest()) socketOf().resume()
  }

  function readRest(): boolean {
    const piece = afterHead
    afterHead = undefined
    return piece === undefined || piece.length === 0 || read(piece, undefined)
  }

  function bodyReader(
    { headers }: IncomingMessage,
    res: ServerResponse,
    onWhole: () => void,
  ): Reader {
    const length = headers['content-length']
    const isChunked = headers['transfer-encoding'] !== undefined
    const framing = isChunked ? createChunkedBody() : createCountedBody(Number(length ?? Infinity))
    return (piece, owner) => {
      const body = framing.read(piece)
      if (!body) {
        onBroken()
        return false
      }
      const isSent = send(res, body.data, owner)
      if (owner && isSent && piece.length < manyBytes) choose(sharedBuffer)
      if (!owner && piece.length >= manyBytes) choose(borrowBuffer())
      if (body.rest === undefined) return isSent
      read = isChunked ? parse : ignore
      if (isChunked) return parse(Buffer.concat([lastChunk, body.rest]))
      onWhole()
      return false
    }
  }

  /** Whether the system has taken it all. Until it has, the memory is kept and nothing more is read. */
  function send(res: ServerResponse, data: readonly Buffer[], owner: Buffer | undefined): boolean {
    if (data.length === 0) return true
    let isHeld = false
    const onSent = (error?: Error | null) => {
      if (!isHeld) return
      unsent -= 1
      if (error) return
      if (owner) returnBuffer(owner)
      if (unsent === 0) socketOf().resume()
    }
    const { socket } = res
    socket?.cork()
    for (const [at, piece] of data.entries()) {
      if (at === data.length - 1) res.write(piece, onSent)
      else res.write(piece)
    }
    socket?.uncork()
    if (res.writableLength === 0) return true
    isHeld = true
    unsent += 1
    if (owner) buffer = borrowBuffer()
    return false
  }

  function choose(next: Buffer): void {
    if (buffer !== sharedBuffer) returnBuffer(buffer)
    buffer = next
  }
}

const ignore: Reader = () => false

const empty = Buffer.alloc(0)
const endOfHead = '\r\n\r\n'
const lastChunk = Buffer.from('0\r\n')

/** So much at once, and more will come. */
const manyBytes = 16 * 1024
