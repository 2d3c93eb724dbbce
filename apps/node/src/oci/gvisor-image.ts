/*
 * Format of checkpoint.img, as `runsc checkpoint --compression=none` writes it (gVisor 20240729: pkg/state/statefile,
 * pkg/compressio, pkg/state/wire). A JSON header and its hash come first, then a byte stream in frames: a 4-byte length
 * and that many bytes, mostly one. The stream has no checksum. It holds two graphs, the CPU features and the kernel;
 * each has a count, type names and numbered objects. Most integers are varints.
 */

/** Reads the stream of a checkpoint image. Throws `UnknownImage` for any other format. */
export interface ImageReader {
  /** Reads a varint. Inexact from 2^53 on. */
  uint(): number
  /** Reads a varint and returns the file offsets of its bytes. */
  uintOffsets(): number[]
  /** Reads the number of objects in the next graph. */
  graphSize(): number
  /** Reads a varint that counts following items; throws when it exceeds the image size. */
  count(): number
  text(): string
  skip(bytes: number): void
  isAtEnd(): boolean
}

export class UnknownImage extends Error {
  override readonly name = 'UnknownImage'
}

export function openImage(file: Buffer): ImageReader {
  let at = streamStart(file)
  let left = 0

  function enterFrame(): void {
    if (at + 4 > file.length) throw new UnknownImage('the image is truncated')
    left = file.readUInt32BE(at)
    at += 4
    if (left === 0 || at + left > file.length) throw new UnknownImage('a frame has a wrong length')
  }

  function byte(): number {
    // Fast path: nearly all frames are one byte long, and there are hundreds of thousands.
    if (left === 0 && file[at + 3] === 1 && !file[at + 2] && !file[at + 1] && !file[at]) {
      at += 5
      const single = file[at - 1]
      if (single !== undefined) return single
      throw new UnknownImage('the image is truncated')
    }
    if (left === 0) enterFrame()
    left--
    return file[at++] ?? 0
  }

  function uint(): number {
    const first = byte()
    if (first < 0x80) return first
    let value = first & 0x7f
    let unit = 0x80
    for (let i = 1; i < maxVarintBytes; i++) {
      const next = byte()
      value += (next & 0x7f) * unit
      if (next < 0x80) return value
      unit *= 0x80
    }
    throw new UnknownImage('a number is too long')
  }

  function count(): number {
    const value = uint()
    if (value > file.length) throw new UnknownImage('a count is larger than the image')
    return value
  }

  function skip(bytes: number): void {
    for (let rest = bytes; rest > 0;) {
      if (left === 0) enterFrame()
      const step = Math.min(left, rest)
      at += step
      left -= step
      rest -= step
    }
  }

  return {
    uint,
    count,
    skip,
    // Bit 63 marks a graph size; reading it as a number would be inexact.
    graphSize() {
      let size = 0
      for (let i = 0; i < maxVarintBytes - 1; i++) size += (byte() & 0x7f) * 0x80 ** i
      if (byte() !== 1 || size > file.length) throw new UnknownImage('a graph has no size')
      return size
    },
    uintOffsets() {
      const offsets: number[] = []
      for (let next = 0x80; next >= 0x80; offsets.push(at - 1)) next = byte()
      return offsets
    },
    text() {
      const length = count()
      if (length > 0 && left === 0) enterFrame()
      if (length > left) throw new UnknownImage('a text is in pieces')
      const start = at
      skip(length)
      return file.toString('latin1', start, at)
    },
    isAtEnd: () => left === 0 && at === file.length,
  }
}

function streamStart(file: Buffer): number {
  const isImage = file.length > 16 && file.toString('latin1', 0, 8) === 'gVisorSF'
  const headEnd = isImage ? 16 + Number(file.readBigUInt64BE(8)) : 0
  if (!file.toString('latin1', 16, headEnd).includes('"compression":"none"')) {
    throw new UnknownImage('the file is not an uncompressed image of gVisor')
  }
  return headEnd + hashBytes
}

const maxVarintBytes = 10
const hashBytes = 32
