/**
 * Takes the body of a large request off its connection before node:http sees it, which would copy each piece to fresh
 * memory. The head was parsed by node:http, and the answer is still written by it; but its parser is left in the middle of
 * the body, so that no other request can come by this connection: it closes after the answer.
 *
 * Threats: whoever sends the body is hostile. As many bytes are taken as the head promised, all of them the body of that
 * one request; what follows them is thrown away, never read as a request.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { createBodyPieces } from './body-pieces.ts'
import { readInto } from './read-into.ts'

export interface TakenBody {
  /**
   * Each piece is good until the next is asked for. Fails when the client leaves, or when the rest was discarded; leaving
   * the loop discards it.
   */
  readonly pieces: AsyncIterable<Buffer>
  /** What is left is read for nothing. The end of the answer does the same. */
  discard(): void
}

/**
 * Undefined for a body that is small, in chunks, or partly read: that comes as usual. Not to be called within the event
 * 'request' but after it: while that goes on, the parser still holds what came with the head.
 */
export function takeBody(req: IncomingMessage, res: ServerResponse): TakenBody | undefined {
  const { socket } = req
  const length = lengthOf(req) - req.readableLength
  // An answer that has no socket waits for those to earlier requests.
  const isOurs = res.socket === socket && !req.readableDidRead && !('encrypted' in socket)
  if (length < leastBytes || !isOurs) return undefined
  const pieces = createBodyPieces({ length, onRoom: () => socket.resume(), onWhole })
  if (!readInto(socket, { buffer: pieces.room, callback: pieces.add })) return undefined
  stopParsing(socket)
  pieces.begin(readSoFar(req))
  res.shouldKeepAlive = false
  let isWhole = false
  let isAnswered = false
  const discard = () => pieces.discard(new Error('The rest of the body is not wanted'))
  socket.once('end', () => isWhole || socket.destroy())
  socket.once('close', () => isWhole || pieces.discard(new Error('The client left')))
  // What node:http does after an answer that is the last: a close with something unread resets the connection, and may take
  // the answer with it. So what the client sends is read until it stops, but not for ever.
  socket.destroySoon = onAnswered
  res.once('finish', onAnswered)
  const body = { pieces: iterable(pieces.next, discard), discard }
  taken.set(req, body)
  return body

  function onWhole(): void {
    isWhole = true
    req.complete = true
    req.push(null)
    req.resume()
    if (isAnswered) socket.end()
  }

  function onAnswered(): void {
    if (isAnswered) return
    isAnswered = true
    discard()
    const timer = setTimeout(() => socket.destroy(), lingerMs)
    timer.unref()
    socket.once('close', () => clearTimeout(timer))
    if (isWhole) socket.end()
  }
}

const leastBytes = 1024 * 1024
const lingerMs = 30_000

const taken = new WeakMap<IncomingMessage, TakenBody>()

/** The body of this request, if it was taken. */
export function takenBody(req: IncomingMessage): TakenBody | undefined {
  return taken.get(req)
}

function lengthOf({ headers }: IncomingMessage): number {
  const length = Number(headers['content-length'] ?? 0)
  return headers['transfer-encoding'] === undefined && Number.isSafeInteger(length) ? length : 0
}

/** node:http reads the socket below its events, until somebody listens to them. */
function stopParsing(socket: Socket): void {
  const ignore = () => {}
  socket.on('data', ignore)
  socket.off('data', ignore)
  // To the parser the body does not end, and it would take the end of the connection for an error.
  socket.removeAllListeners('end')
}

function readSoFar(req: IncomingMessage): Buffer[] {
  const pieces: Buffer[] = []
  for (let piece: unknown = req.read(); Buffer.isBuffer(piece); piece = req.read()) {
    pieces.push(piece)
  }
  return pieces
}

function iterable(
  next: () => Promise<IteratorResult<Buffer, undefined>>,
  discard: () => void,
): AsyncIterable<Buffer> {
  const leave = () => {
    discard()
    return Promise.resolve({ done: true, value: undefined } as const)
  }
  return { [Symbol.asyncIterator]: () => ({ next, return: leave }) }
}
