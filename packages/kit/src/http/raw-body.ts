/**
 * Reads the body of a large request directly from its socket, because node:http would copy each piece to fresh memory.
 * node:http has parsed the head and still writes the response, but its parser stays in the middle of the body: the
 * connection cannot carry another request and closes after the response.
 *
 * Threats: the client is hostile. Exactly as many bytes are read as Content-Length says, all of them as the body of
 * this request. Later bytes are discarded and never parsed as a request.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { createBodyPieces } from './body-pieces.ts'
import { readInto } from './read-into.ts'

export interface RawBody {
  /**
   * Each piece is valid until the next is requested. Rejects if the client disconnects or the body is discarded.
   * Leaving the loop discards the rest.
   */
  readonly pieces: AsyncIterable<Buffer>
  /** Discards the rest of the body. Finishing the response does the same. */
  discard(): void
}

/**
 * Returns undefined for a body that is small, chunked or partly read; node:http reads it as usual. Call after the
 * 'request' event, not inside it: during the event the parser still holds the bytes that came with the head.
 */
export function takeRawBody(req: IncomingMessage, res: ServerResponse): RawBody | undefined {
  const { socket } = req
  const length = lengthOf(req) - req.readableLength
  // A response without a socket waits for the responses to earlier requests.
  const canTake = res.socket === socket && !req.readableDidRead && !('encrypted' in socket)
  if (length < minBytes || !canTake) return undefined
  const pieces = createBodyPieces({ length, onReadable: () => socket.resume(), onComplete })
  if (!readInto(socket, { buffer: pieces.readBuffer, callback: pieces.add })) return undefined
  stopParsing(socket)
  pieces.addInitial(readSoFar(req))
  res.shouldKeepAlive = false
  let isComplete = false
  let isResponseSent = false
  const discard = () => pieces.discard(new Error('The rest of the request body was discarded'))
  socket.once('end', () => isComplete || socket.destroy())
  socket.once(
    'close',
    () =>
      isComplete ||
      pieces.discard(new Error('The client disconnected before the request body was complete')),
  )
  // Replaces the close of node:http after a last response. Closing with unread data resets the connection and may drop
  // the response, so read what the client sends until it stops or a timeout passes.
  socket.destroySoon = onResponseSent
  res.once('finish', onResponseSent)
  const body = { pieces: iterable(pieces.next, discard), discard }
  rawBodies.set(req, body)
  return body

  function onComplete(): void {
    isComplete = true
    req.complete = true
    req.push(null)
    req.resume()
    if (isResponseSent) socket.end()
  }

  function onResponseSent(): void {
    if (isResponseSent) return
    isResponseSent = true
    discard()
    const timer = setTimeout(() => socket.destroy(), lingerMs)
    timer.unref()
    socket.once('close', () => clearTimeout(timer))
    if (isComplete) socket.end()
  }
}

const minBytes = 1024 * 1024
const lingerMs = 30_000

const rawBodies = new WeakMap<IncomingMessage, RawBody>()

/** Returns the body of this request if `takeRawBody` took it. */
export function rawBodyOf(req: IncomingMessage): RawBody | undefined {
  return rawBodies.get(req)
}

function lengthOf({ headers }: IncomingMessage): number {
  const length = Number(headers['content-length'] ?? 0)
  return headers['transfer-encoding'] === undefined && Number.isSafeInteger(length) ? length : 0
}

/** node:http reads from the handle directly until a 'data' listener is added. */
function stopParsing(socket: Socket): void {
  const ignore = () => {}
  socket.on('data', ignore)
  socket.off('data', ignore)
  // The parser never sees the end of the body, so it would report the end of the connection as an error.
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
  const onReturn = () => {
    discard()
    return Promise.resolve({ done: true, value: undefined } as const)
  }
  return { [Symbol.asyncIterator]: () => ({ next, return: onReturn }) }
}
