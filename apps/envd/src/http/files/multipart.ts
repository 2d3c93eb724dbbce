/**
 * Reads multipart bodies (RFC 2046, 5.1; RFC 7578) as they arrive. Threats: boundaries that never come, headers without
 * end, millions of parts. No more is held than a piece of the source, the headers of one part and a boundary.
 */
import { Fault } from '@atoll/kit/fault'
import { parsePartHeaders } from './part-headers.ts'
import type { PartHeaders } from './part-headers.ts'

export interface Part extends PartHeaders {
  /** To be read before the next part is asked for; what is not read is passed over. */
  readonly body: AsyncIterable<Buffer>
}

/** A piece of `source` need be good only until the next is asked for. */
export async function* parseMultipart(
  source: AsyncIterable<Buffer>,
  boundary: string,
): AsyncGenerator<Part> {
  // The first boundary may stand at the very beginning; with this it stands at a line's beginning like all others.
  const reader = createReader(source, Buffer.from('\r\n'))
  const delimiter = Buffer.from(`\r\n--${boundary}`)
  await drain(reader.until(delimiter)) // what comes before the first part has no meaning
  for (let count = 0; !(await reader.startsWith('--')); count += 1) {
    if (count === partLimit) throwBadMultipart(`has more than ${partLimit} parts`)
    const head = await reader.take(headEnd, headLimitBytes)
    const body = reader.until(delimiter)
    yield { ...parsePartHeaders(head.toString('utf8')), body }
    await drain(body)
  }
}

const headEnd = Buffer.from('\r\n\r\n')
const headLimitBytes = 64 * 1024
const partLimit = 100_000

async function drain(body: AsyncIterable<Buffer>): Promise<void> {
  for await (const _ of body);
}

interface Reader {
  /** What comes before `mark`, in pieces; the mark itself is taken too. */
  until(mark: Buffer): AsyncGenerator<Buffer, void>
  /** The same in one piece. */
  take(mark: Buffer, limitBytes: number): Promise<Buffer>
  startsWith(text: string): Promise<boolean>
}

function createReader(source: AsyncIterable<Buffer>, initial: Buffer): Reader {
  const iterator = source[Symbol.asyncIterator]()
  let buffered = initial
  return {
    async *until(mark) {
      for (;;) {
        const at = buffered.indexOf(mark)
        if (at >= 0) {
          const last = buffered.subarray(0, at)
          buffered = buffered.subarray(at + mark.length)
          if (last.length > 0) yield last
          return
        }
        const kept = possibleMarkStart(mark, buffered)
        const chunk = buffered.subarray(0, kept)
        buffered = buffered.subarray(kept)
        if (chunk.length > 0) yield chunk
        await readMore()
      }
    },
    async take(mark, limitBytes) {
      for (;;) {
        const at = buffered.indexOf(mark)
        if (at > limitBytes || (at < 0 && buffered.length > limitBytes)) {
          throwBadMultipart(`has a part whose headers are larger than ${limitBytes} bytes`)
        }
        if (at < 0) await readMore()
        else {
          const taken = buffered.subarray(0, at)
          buffered = buffered.subarray(at + mark.length)
          return taken
        }
      }
    },
    async startsWith(text) {
      while (buffered.length < text.length) await readMore()
      return buffered.toString('latin1', 0, text.length) === text
    },
  }

  async function readMore(): Promise<void> {
    const kept = Buffer.from(buffered) // a piece is good until the next is asked for
    const next = await iterator.next()
    if (next.done) throwBadMultipart('ends before its last boundary')
    buffered = kept.length === 0 ? next.value : Buffer.concat([kept, next.value])
  }
}

/** Where in the last bytes a mark may have begun; the length when it has not. */
function possibleMarkStart(mark: Buffer, buffered: Buffer): number {
  const at = buffered.indexOf(mark.subarray(0, 1), Math.max(0, buffered.length - mark.length + 1))
  return at < 0 ? buffered.length : at
}

function throwBadMultipart(what: string): never {
  throw new Fault('internal', 'bad_multipart', `The multipart body ${what}`)
}
