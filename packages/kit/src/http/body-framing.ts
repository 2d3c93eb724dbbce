/**
 * Finds the data of an HTTP body in the bytes of a connection without copying it (RFC 9112, 6 and 7.1).
 *
 * Threats: the bytes come from a sandbox or an unknown server. At most one line is buffered, and malformed framing can
 * only break its own response.
 */
export interface BodyFraming {
  /** Returns undefined if the framing is malformed. Do not call again after that. */
  read(piece: Buffer): BodyPiece | undefined
}

export interface BodyPiece {
  readonly data: readonly Buffer[]
  /** Bytes after the end of the body. After a chunked body these are trailers, or at least an empty line. */
  readonly rest?: Buffer
}

export function createCountedBody(length: number): BodyFraming {
  let left = length
  return {
    read(piece) {
      const data = [piece.subarray(0, left)]
      left -= Math.min(left, piece.length)
      return left > 0 ? { data } : { data, rest: piece.subarray(data[0]?.length) }
    },
  }
}

export function createChunkedBody(): BodyFraming {
  let line = ''
  let left = 0
  let isData = false

  return {
    read(piece) {
      const data: Buffer[] = []
      for (let at = 0; at < piece.length;) {
        if (isData && left > 0) {
          const part = piece.subarray(at, at + left)
          data.push(part)
          left -= part.length
          at += part.length
          continue
        }
        const lineFeed = piece.indexOf(0x0a, at)
        const end = lineFeed === -1 ? piece.length : lineFeed + 1
        if (line.length + end - at > maxLineLength) return undefined
        line += piece.toString('latin1', at, end)
        at = end
        if (lineFeed === -1) break
        const size = isData ? parseChunkEnd(line) : parseChunkSize(line)
        if (size === undefined) return undefined
        line = ''
        if (!isData && size === 0) return { data, rest: piece.subarray(at) }
        isData = !isData
        left = size
      }
      return { data }
    },
  }
}

/** Includes chunk extensions, which are accepted and ignored. */
const maxLineLength = 1024

function parseChunkSize(line: string): number | undefined {
  const digits = /^([0-9a-f]{1,12})[ \t]*(?:;[^\r\n]*)?\r\n$/i.exec(line)?.[1]
  return digits === undefined ? undefined : Number.parseInt(digits, 16)
}

function parseChunkEnd(line: string): 0 | undefined {
  return line === '\r\n' ? 0 : undefined
}
