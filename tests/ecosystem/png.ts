import assert from 'node:assert/strict'
import { inflateSync } from 'node:zlib'

export interface Picture {
  readonly width: number
  readonly height: number
  /** Color of a pixel, such as `ff0080`. */
  color(x: number, y: number): string
  /** Number of different colors on a grid of points. */
  countColors(): number
}

/** Reads a PNG file with 8 bits per channel: RGB, RGBA or with a palette, not interlaced. */
export function readPng(bytes: Uint8Array): Picture {
  const file = Buffer.from(bytes)
  assert.equal(file.toString('latin1', 1, 4), 'PNG')
  const width = file.readUInt32BE(16)
  const height = file.readUInt32BE(20)
  const [depth, colorType, , , interlace] = file.subarray(24, 29)
  assert.deepEqual([depth, interlace], [8, 0])
  const channels = channelsByColorType[colorType ?? 0] ?? assert.fail(`color type ${colorType}`)
  const pixels = unfilter(inflateSync(joinChunks(file, 'IDAT')), width * channels, channels)
  const palette = joinChunks(file, 'PLTE')
  const color = (x: number, y: number) => {
    const at = (y * width + x) * channels
    const [colors, start] = channels === 1 ? [palette, (pixels[at] ?? 0) * 3] : [pixels, at]
    return colors.toString('hex', start, start + 3)
  }
  return {
    ...{ width, height, color },
    countColors() {
      const seen = new Set<string>()
      for (let y = 0; y < height; y += 4) {
        for (let x = 0; x < width; x += 4) seen.add(color(x, y))
      }
      return seen.size
    },
  }
}

const channelsByColorType: Readonly<Record<number, number>> = { 2: 3, 3: 1, 6: 4 }

function joinChunks(file: Buffer, type: string): Buffer {
  const parts: Buffer[] = []
  for (let at = 8; at < file.length; at += 12 + file.readUInt32BE(at)) {
    const isWanted = file.toString('latin1', at + 4, at + 8) === type
    if (isWanted) parts.push(file.subarray(at + 8, at + 8 + file.readUInt32BE(at)))
  }
  return Buffer.concat(parts)
}

/** Undoes the filter of each row (PNG specification, 9.2). */
function unfilter(data: Buffer, rowBytes: number, channels: number): Buffer {
  const rows = data.length / (rowBytes + 1)
  const result = Buffer.alloc(rows * rowBytes)
  for (let row = 0; row < rows; row += 1) {
    const filter = data[row * (rowBytes + 1)] ?? 0
    for (let index = 0; index < rowBytes; index += 1) {
      const at = row * rowBytes + index
      const left = index < channels ? 0 : (result[at - channels] ?? 0)
      const up = row === 0 ? 0 : (result[at - rowBytes] ?? 0)
      const corner = row === 0 || index < channels ? 0 : (result[at - rowBytes - channels] ?? 0)
      const predicted = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter] ?? 0
      result[at] = (data[row * (rowBytes + 1) + 1 + index] ?? 0) + predicted
    }
  }
  return result
}

function paeth(left: number, up: number, corner: number): number {
  const estimate = left + up - corner
  const [toLeft, toUp, toCorner] = [left, up, corner].map((one) => Math.abs(estimate - one))
  if (toLeft === undefined || toUp === undefined || toCorner === undefined) return 0
  if (toLeft <= toUp && toLeft <= toCorner) return left
  return toUp <= toCorner ? up : corner
}
