/**
 * Writes tar archives in GNU format, which GNU tar, busybox and bsdtar all read. The size is known before the first
 * byte, so that an upload can announce it, and equal files give equal archives, which build caches need. Libraries such
 * as `tar-stream` do not compute the size in advance.
 */
import { Fault } from '@atoll/kit/fault'

export interface TarEntry {
  /** Relative, with `/` as separator. */
  readonly path: string
  readonly kind: 'file' | 'directory' | 'symlink'
  /** Permission bits. */
  readonly mode: number
  /** Content of a file; 0 for other kinds. */
  readonly sizeBytes: number
  /** Target of a symlink. */
  readonly linkTarget?: string
  readonly modifiedSeconds?: number
  /** Reads a file. */
  open?(): AsyncIterable<Uint8Array>
}

const block = 512
/** Two empty blocks. */
const endBytes = 2 * block

export function tarSize(entries: readonly TarEntry[]): number {
  const sizes = entries.map(
    (entry) =>
      headersOf(entry).reduce((sum, { length }) => sum + length, 0) + padded(entry.sizeBytes),
  )
  return sizes.reduce((sum, size) => sum + size, endBytes)
}

export async function* tarChunks(entries: readonly TarEntry[]): AsyncGenerator<Uint8Array> {
  for (const entry of entries) {
    yield* headersOf(entry)
    if (entry.kind !== 'file') continue
    let written = 0
    for await (const piece of entry.open?.() ?? []) {
      written += piece.length
      if (written > entry.sizeBytes) throw changed(entry)
      yield piece
    }
    if (written !== entry.sizeBytes) throw changed(entry)
    yield Buffer.alloc(padded(written) - written)
  }
  yield Buffer.alloc(endBytes)
}

function changed({ path }: TarEntry): Fault {
  const message = `${path} changed while it was read. Run the command again when nothing writes to it.`
  return new Fault('conflict', 'file_changed', message)
}

function padded(size: number): number {
  return Math.ceil(size / block) * block
}

/** Names of more than 100 bytes go into entries of their own, before the header that they belong to. */
function headersOf(entry: TarEntry): Buffer[] {
  const name = Buffer.from(entry.kind === 'directory' ? `${entry.path}/` : entry.path)
  const link = Buffer.from(entry.linkTarget ?? '')
  return [
    ...(name.length > shortName ? longText('L', name) : []),
    ...(link.length > shortName ? longText('K', link) : []),
    header({ ...entry, name, link, type: types[entry.kind] }),
  ]
}

const shortName = 100
const types = { file: '0', directory: '5', symlink: '2' } as const

function longText(type: 'L' | 'K', text: Buffer): Buffer[] {
  const sizeBytes = text.length + 1
  const name = Buffer.from('././@LongLink')
  const content = Buffer.alloc(padded(sizeBytes))
  text.copy(content)
  return [header({ name, link: Buffer.alloc(0), type, mode: 0o644, sizeBytes }), content]
}

interface Header {
  readonly name: Buffer
  readonly link: Buffer
  readonly type: string
  readonly mode: number
  readonly sizeBytes: number
  readonly modifiedSeconds?: number
}

function header({ name, link, type, mode, sizeBytes, modifiedSeconds = 0 }: Header): Buffer {
  const bytes = Buffer.alloc(block)
  name.copy(bytes, 0, 0, shortName)
  bytes.write(octal(mode & 0o7777, 7), 100)
  bytes.write(octal(0, 7), 108)
  bytes.write(octal(0, 7), 116)
  writeSize(bytes, sizeBytes)
  bytes.write(octal(Math.max(0, Math.floor(modifiedSeconds)), 11), 136)
  bytes.fill(' ', 148, 156)
  bytes.write(type, 156)
  link.copy(bytes, 157, 0, shortName)
  bytes.write('ustar  ', 257)
  bytes.write('root', 265)
  bytes.write('root', 297)
  const sum = bytes.reduce((total, byte) => total + byte, 0)
  bytes.write(`${octal(sum, 6)}\0 `, 148)
  return bytes
}

/** Sizes from 8 GiB on do not fit into octal digits. */
function writeSize(bytes: Buffer, size: number): void {
  if (size < 8 ** 11) {
    bytes.write(octal(size, 11), 124)
    return
  }
  bytes[124] = 0x80
  bytes.writeBigUInt64BE(BigInt(size), 128)
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, '0')
}
