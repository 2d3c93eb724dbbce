/**
 * Sends one POST over its own connection, for large responses. node:http would copy each piece to fresh memory and pass
 * it through two streams, which takes several times as long as reading it.
 *
 * Threats: the server may be hostile. The response head is limited in size, and the body is not buffered: the caller
 * gets it as it arrives and decides when to stop reading.
 */
import { connect } from 'node:net'
import type { BodyFraming } from '@atoll/kit/http/body-framing'
import { framingOf, isOpenEnded, parseHead } from './response-head.ts'
import type { ResponseHead } from './response-head.ts'
import type { ReadBuffers } from './read-buffers.ts'

export interface HttpPost {
  /** Only `http:` URLs. */
  readonly url: URL
  readonly headers: Headers
  readonly body: Uint8Array
  /** Buffers that the response is read into. */
  readonly memory: ReadBuffers
}

/** Callbacks in call order. Exceptions of the first two are passed to `onFailure`. */
export interface ResponseReader {
  onHead(head: ResponseHead): void
  /** `pieces` lie in `memory`. Returns whether to keep reading. */
  onData(pieces: readonly Buffer[]): boolean
  /** Called at most once, as the last callback. */
  onEnd(): void
  /** Called instead of `onEnd`, also at most once. */
  onFailure(thrown: unknown): void
}

export interface RunningPost {
  /** Continues reading. */
  resume(): void
  /** Closes the connection. No callback follows. */
  close(): void
}

export function postHttp(post: HttpPost, reader: ResponseReader): RunningPost {
  const { url, headers, body, memory } = post
  let head = ''
  let framing: BodyFraming | undefined
  let endsWithConnection = false
  let isDone = false
  const socket = connect({
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || 80),
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: 20_000,
    onread: {
      buffer: memory.readBuffer,
      callback: (length) => withFailure(() => read(memory.commit(length))),
    },
  })
  socket.on('error', fail)
  socket.once('end', () => (endsWithConnection ? end() : fail(connectionReset())))
  socket.once('close', () => fail(connectionReset()))
  socket.write(Buffer.concat([Buffer.from(headOf(url, headers, body.length), 'latin1'), body]))
  return { resume: () => void socket.resume(), close: close }

  function read(piece: Buffer): boolean {
    return framing ? readBody(framing, piece) : readHead(piece)
  }

  function readHead(piece: Buffer): boolean {
    const known = head.length
    head += piece.toString('latin1')
    const endsAt = head.indexOf(endOfHead, Math.max(0, known - endOfHead.length))
    if ((endsAt === -1 ? head.length : endsAt) > headLimit) throw invalidHttp()
    if (endsAt === -1) return true
    startBody(head.slice(0, endsAt))
    head = ''
    const rest = piece.subarray(endsAt + endOfHead.length - known)
    return isDone || read(rest)
  }

  function startBody(text: string): void {
    const parsed = parseHead(text)
    if (!parsed || parsed.status === 101) throw invalidHttp()
    if (parsed.status < 200) return // an informational response; the final one follows
    framing = framingOf(parsed)
    if (!framing) throw invalidHttp()
    endsWithConnection = isOpenEnded(parsed)
    reader.onHead(parsed)
  }

  function readBody(framed: BodyFraming, piece: Buffer): boolean {
    const found = framed.read(piece)
    if (!found) throw invalidHttp()
    const goesOn = reader.onData(found.data)
    if (found.rest) end() // this protocol does not use trailers
    return goesOn
  }

  function withFailure(work: () => boolean): boolean {
    try {
      return !isDone && work()
    } catch (thrown) {
      fail(thrown)
      return false
    }
  }

  function end(): void {
    if (isDone) return
    close()
    reader.onEnd()
  }

  function fail(thrown: unknown): void {
    if (isDone) return
    close()
    reader.onFailure(thrown)
  }

  function close(): void {
    isDone = true
    socket.destroy()
  }
}

function headOf(url: URL, headers: Headers, length: number): string {
  const all = new Headers(headers)
  all.set('host', url.host)
  all.set('content-length', String(length))
  all.set('connection', 'close')
  const lines = Array.from(all, ([name, value]) => `${name}: ${value}\r\n`)
  return `POST ${url.pathname}${url.search} HTTP/1.1\r\n${lines.join('')}\r\n`
}

const endOfHead = '\r\n\r\n'
const headLimit = 64 * 1024

function invalidHttp(): Error {
  return new Error('The server did not send a valid HTTP/1.1 response')
}

/** Has the code of a reset, as errors of node:http do. */
function connectionReset(): Error {
  return Object.assign(new Error('The connection closed before the response was complete'), {
    code: 'ECONNRESET',
  })
}
