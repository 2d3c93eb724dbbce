/**
 * Reads a tar archive as it arrives. Threats: the archive comes from a sandbox. Every header has a checksum and bounds,
 * names are limited, and nothing is buffered but one header or name. The caller must check the paths.
 *
 * Not a library: `tar` and `tar-stream` accept an archive that was cut off between two entries as complete, and `tar`
 * also decompresses input that looks like gzip.
 */
import { Fault } from '@atoll/kit/fault'

export interface ReadEntry {
  readonly path: string
  readonly kind: 'file' | 'directory' | 'symlink' | 'hardlink' | 'other'
  /** Permission bits. */
  readonly mode: number
  readonly sizeBytes: number
  /** Target of a link. */
  readonly linkTarget: string
}

export interface TarSink {
  /** Called once per entry. `data` and `end` follow for files. */
  begin(entry: ReadEntry): Promise<void>
  data(bytes: Uint8Array): Promise<void>
  end(): Promise<void>
}

export interface TarReader {
  write(chunk: Uint8Array): Promise<void>
  /** Fails if the archive is incomplete. */
  finish(): void
}

const block = 512
const nameLimit = 64 * 1024

/** Bytes after the current header, with their padding. */
interface Content {
  readonly kind: 'file' | 'skipped' | 'long-name' | 'long-link' | 'attributes'
  left: number
  padding: number
  readonly collected: Buffer[]
}

interface State {
  readonly sink: TarSink
  header: Buffer
  content: Content | undefined
  /** Attributes for the next entry. */
  pending: Pending
  isEnded: boolean
}

interface Pending {
  path?: string
  link?: string
  size?: number
}

export function createTarReader(sink: TarSink): TarReader {
  const state: State = {
    ...{ sink, header: Buffer.alloc(0), content: undefined },
    ...{ pending: {}, isEnded: false },
  }
  return {
    async write(chunk) {
      let rest: Buffer = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
      while (rest.length > 0 && !state.isEnded) {
        const { content } = state
        rest = content ? await readContent(state, content, rest) : await readHeader(state, rest)
      }
    },
    finish() {
      if (!state.isEnded) throw broken('it ends too early')
    },
  }
}

async function readHeader(state: State, bytes: Buffer): Promise<Buffer> {
  const taken = bytes.subarray(0, block - state.header.length)
  const header = Buffer.concat([state.header, taken])
  const isWhole = header.length === block
  state.header = isWhole ? Buffer.alloc(0) : header
  if (isWhole && header.every((byte) => byte === 0)) state.isEnded = true
  else if (isWhole) await beginEntry(state, header)
  return bytes.subarray(taken.length)
}

async function beginEntry(state: State, header: Buffer): Promise<void> {
  checkSum(header)
  const type = header.toString('latin1', 156, 157)
  const extra = extras.get(type)
  if (extra) {
    const size = readNumber(header, 124, 12)
    if (size > nameLimit) throw broken('a name is too long')
    return openContent(state, extra, size)
  }
  const entry = toEntry(header, type, state.pending)
  state.pending = {}
  await state.sink.begin(entry)
  await openContent(state, entry.kind === 'file' ? 'file' : 'skipped', entry.sizeBytes)
}

async function openContent(state: State, kind: Content['kind'], size: number): Promise<void> {
  const padding = (block - (size % block)) % block
  state.content = { kind, left: size, padding, collected: [] }
  if (size === 0) await closeContent(state, state.content)
}

async function readContent(state: State, content: Content, bytes: Buffer): Promise<Buffer> {
  if (content.left === 0) {
    const skipped = Math.min(content.padding, bytes.length)
    content.padding -= skipped
    if (content.padding === 0) state.content = undefined
    return bytes.subarray(skipped)
  }
  const taken = bytes.subarray(0, content.left)
  content.left -= taken.length
  if (content.kind === 'file') await state.sink.data(taken)
  else if (content.kind !== 'skipped') content.collected.push(Buffer.from(taken))
  if (content.left === 0) await closeContent(state, content)
  return bytes.subarray(taken.length)
}

async function closeContent(state: State, content: Content): Promise<void> {
  if (content.padding === 0) state.content = undefined
  const text = Buffer.concat(content.collected).toString()
  const { pending } = state
  if (content.kind === 'file') await state.sink.end()
  else if (content.kind === 'long-name') pending.path = untilNul(text)
  else if (content.kind === 'long-link') pending.link = untilNul(text)
  else if (content.kind === 'attributes') Object.assign(pending, readAttributes(text))
}

const extras: ReadonlyMap<string, Content['kind']> = new Map([
  ['L', 'long-name'],
  ['K', 'long-link'],
  ['x', 'attributes'],
  ['g', 'skipped'],
])

const kinds: ReadonlyMap<string, ReadEntry['kind']> = new Map([
  ['0', 'file'],
  ['\0', 'file'],
  ['7', 'file'],
  ['1', 'hardlink'],
  ['2', 'symlink'],
  ['5', 'directory'],
])

function toEntry(bytes: Buffer, type: string, { path, link, size }: Pending): ReadEntry {
  const kind = kinds.get(type) ?? 'other'
  const isPosix = bytes.toString('latin1', 257, 263) === 'ustar\0'
  const prefix = isPosix ? untilNul(bytes.toString('utf8', 345, 500)) : ''
  const name = untilNul(bytes.toString('utf8', 0, 100))
  const hasContent = kind === 'file' || kind === 'other'
  return {
    kind,
    path: path ?? (prefix === '' ? name : `${prefix}/${name}`),
    mode: readNumber(bytes, 100, 8) & 0o777,
    sizeBytes: hasContent ? (size ?? readNumber(bytes, 124, 12)) : 0,
    linkTarget: link ?? untilNul(bytes.toString('utf8', 157, 257)),
  }
}

function checkSum(bytes: Buffer): void {
  const stored = readNumber(bytes, 148, 8)
  const blank = Buffer.from(bytes).fill(' ', 148, 156)
  if (blank.reduce((sum, byte) => sum + byte, 0) !== stored) throw broken('a header is damaged')
}

function readNumber(bytes: Buffer, at: number, length: number): number {
  const field = bytes.subarray(at, at + length)
  const text = field
    .toString('latin1')
    .replaceAll(/[\0 ]+/g, ' ')
    .trim()
  const isBinary = (field[0] ?? 0) === 0x80
  const value = isBinary ? Number(field.readBigUInt64BE(length - 8)) : octal(text)
  if (!Number.isSafeInteger(value)) throw broken('a number is out of range')
  return value
}

function octal(text: string): number {
  if (text === '') return 0
  return /^[0-7]+$/.test(text) ? Number.parseInt(text, 8) : Number.NaN
}

/** Records of a pax header: `<length> <key>=<value>\n`. */
function readAttributes(text: string): Pending {
  const bytes = Buffer.from(text)
  const found: Pending = {}
  for (let at = 0; at < bytes.length;) {
    const [, digits = ''] = /^(\d{1,6}) /.exec(bytes.toString('latin1', at, at + 8)) ?? []
    const length = Number(digits)
    if (digits === '' || length < digits.length + 3 || at + length > bytes.length) {
      throw broken('an attribute is damaged')
    }
    const record = bytes.toString('utf8', at + digits.length + 1, at + length - 1)
    const [, key, value = ''] = /^([^=]+)=([^]*)$/.exec(record) ?? []
    if (key === 'path') found.path = value
    else if (key === 'linkpath') found.link = value
    else if (key === 'size') found.size = attributeSize(value)
    at += length
  }
  return found
}

function attributeSize(text: string): number {
  const size = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(size)) throw broken('a size is out of range')
  return size
}

function untilNul(text: string): string {
  const end = text.indexOf('\0')
  return end === -1 ? text : text.slice(0, end)
}

function broken(reason: string): Fault {
  const message = `The archive from the sandbox cannot be read: ${reason}`
  return new Fault('invalid', 'archive_broken', message)
}
