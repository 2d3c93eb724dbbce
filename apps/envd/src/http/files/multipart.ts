/**
 * Streaming parser for multipart bodies (RFC 2046, 5.1; RFC 7578). Threats: missing boundaries, endless headers,
 * millions of parts. It buffers at most one source chunk, the headers of one part and a boundary.
 */
import { Fault } from '@atoll/kit/fault'
import { parsePartHeaders } from './part-headers.ts'
import type { PartHeaders } from './part-headers.ts'

export interface Part extends PartHeaders {
  /** Must be read before the next part is requested; unread bytes are skipped. */
  readonly body: AsyncIterable<Buffer>
}

/** Chunks of `source` need to be valid only until the next is requested. */
export async function* parseMultipart(
  source: AsyncIterable<Buffer>,
  boundary: string,
): AsyncGenerator<Part> {
  // The first boundary may be at the very start of the body. This line break makes it look like the others.
  const reader = createReader(source, Buffer.from('\r\n'))
  const delimiter = Buffer.from(`\r\n--${boundary}`)
  await drain(reader.until(delimiter)) // skip the preamble
  for (let count = 0; !(await reader.startsWith('--')); count += 1) {
    if (count === partLimit) throwBadMultipart(`more than ${partLimit} parts`)
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
  /** Yields the bytes before `mark` in chunks, and consumes the mark. */
  until(mark: Buffer): AsyncGenerator<Buffer, void>
  /** Returns the bytes before `mark`, and consumes the mark. */
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
          throwBadMultipart(`the headers of a part exceed ${limitBytes} bytes`)
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
    const kept = Buffer.from(buffered) // copied, because a chunk is valid only until the next is requested
    const next = await iterator.next()
    if (next.done) throwBadMultipart('it ends before the last boundary')
    buffered = kept.length === 0 ? next.value : Buffer.concat([kept, next.value])
  }
}

/** Index in the last bytes where a partial mark may start; the buffer length if there is none. */
function possibleMarkStart(mark: Buffer, buffered: Buffer): number {
  const at = buffered.indexOf(mark.subarray(0, 1), Math.max(0, buffered.length - mark.length + 1))
  return at < 0 ? buffered.length : at
}

function throwBadMultipart(why: string): never {
  throw new Fault('internal', 'bad_multipart', `Invalid multipart body: ${why}`)
}
