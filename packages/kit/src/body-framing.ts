/**
 * Finds the data of a body in the bytes of a connection, without copying it (RFC 9112, 6 and 7.1).
 *
 * Threats: the bytes are a sandbox's, or some server's. No more of them is kept than a line, and wrong framing can do no
 * more than break off its own answer.
 */
export interface BodyFraming {
  /** Undefined when it is framed wrongly, which is final. */
  read(piece: Buffer): BodyPiece | undefined
}

export interface BodyPiece {
  readonly data: readonly Buffer[]
  /** What follows the body, once that is over. After chunks that is trailers, or at least an empty line. */
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
        const feed = piece.indexOf(0x0a, at)
        const end = feed === -1 ? piece.length : feed + 1
        if (line.length + end - at > lineLimit) return undefined
        line += piece.toString('latin1', at, end)
        at = end
        if (feed === -1) break
        const size = isData ? endOfData(line) : sizeIn(line)
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

/** Extensions are allowed, and mean nothing to anybody. */
const lineLimit = 1024

function sizeIn(line: string): number | undefined {
  const digits = /^([0-9a-f]{1,12})[ \t]*(?:;[^\r\n]*)?\r\n$/i.exec(line)?.[1]
  return digits === undefined ? undefined : Number.parseInt(digits, 16)
}

function endOfData(line: string): 0 | undefined {
  return line === '\r\n' ? 0 : undefined
}
