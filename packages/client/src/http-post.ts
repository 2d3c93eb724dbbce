/**
 * One POST over a connection of its own, for an answer that may be large: node:http would copy each piece of it to fresh
 * memory and pass it through two streams, which takes several times as long as the reading itself.
 *
 * Threats: whoever answers may be hostile. Of a head no more than a limit is kept, of the body nothing: it goes to the
 * caller as it comes, who says when to stop reading.
 */
import { connect } from 'node:net'
import type { BodyFraming } from '@atoll/kit/body-framing'
import { framingOf, isOpenEnded, parseHead } from './answer-head.ts'
import type { AnswerHead } from './answer-head.ts'
import type { ReadMemory } from './read-memory.ts'

export interface HttpPost {
  /** Of the scheme http. */
  readonly url: URL
  readonly headers: Headers
  readonly body: Uint8Array
  /** To read the answer into. */
  readonly memory: ReadMemory
}

/** Called in this order; what is thrown by one of the first two comes back to `onFailure`. */
export interface AnswerReader {
  onHead(head: AnswerHead): void
  /** The pieces lie in `memory`. Answers whether to go on reading. */
  onData(pieces: readonly Buffer[]): boolean
  /** Once, and nothing comes after it. */
  onEnd(): void
  /** Likewise, instead. */
  onFailure(thrown: unknown): void
}

export interface RunningPost {
  /** Goes on reading. */
  resume(): void
  /** Leaves; the reader hears no more. */
  close(): void
}

export function postHttp(post: HttpPost, reader: AnswerReader): RunningPost {
  const { url, headers, body, memory } = post
  let head = ''
  let framing: BodyFraming | undefined
  let endsWithConnection = false
  let isOver = false
  const socket = connect({
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || 80),
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: 20_000,
    onread: {
      buffer: memory.room,
      callback: (length) => guarded(() => read(memory.take(length))),
    },
  })
  socket.on('error', fail)
  socket.once('end', () => (endsWithConnection ? end() : fail(brokenOff())))
  socket.once('close', () => fail(brokenOff()))
  socket.write(Buffer.concat([Buffer.from(headOf(url, headers, body.length), 'latin1'), body]))
  return { resume: () => void socket.resume(), close: leave }

  function read(piece: Buffer): boolean {
    return framing ? readBody(framing, piece) : readHead(piece)
  }

  function readHead(piece: Buffer): boolean {
    const known = head.length
    head += piece.toString('latin1')
    const endsAt = head.indexOf(endOfHead, Math.max(0, known - endOfHead.length))
    if ((endsAt === -1 ? head.length : endsAt) > headLimit) throw notHttp()
    if (endsAt === -1) return true
    begin(head.slice(0, endsAt))
    head = ''
    const rest = piece.subarray(endsAt + endOfHead.length - known)
    return isOver || read(rest)
  }

  function begin(text: string): void {
    const parsed = parseHead(text)
    if (!parsed || parsed.status === 101) throw notHttp()
    if (parsed.status < 200) return // a hint only, another head follows
    framing = framingOf(parsed)
    if (!framing) throw notHttp()
    endsWithConnection = isOpenEnded(parsed)
    reader.onHead(parsed)
  }

  function readBody(framed: BodyFraming, piece: Buffer): boolean {
    const found = framed.read(piece)
    if (!found) throw notHttp()
    const goesOn = reader.onData(found.data)
    if (found.rest) end() // trailers say nothing in this protocol
    return goesOn
  }

  function guarded(work: () => boolean): boolean {
    try {
      return !isOver && work()
    } catch (thrown) {
      fail(thrown)
      return false
    }
  }

  function end(): void {
    if (isOver) return
    leave()
    reader.onEnd()
  }

  function fail(thrown: unknown): void {
    if (isOver) return
    leave()
    reader.onFailure(thrown)
  }

  function leave(): void {
    isOver = true
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

function notHttp(): Error {
  return new Error('The answer is no HTTP/1.1')
}

/** With the code of a reset, as node:http has it. */
function brokenOff(): Error {
  return Object.assign(new Error('The answer broke off'), { code: 'ECONNRESET' })
}
