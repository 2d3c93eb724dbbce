/**
 * Reads fields one after the other. Once something would reach past the end, that and all later fields are undefined and
 * the end is never met, so that only the last step has to be looked at.
 */
export interface Cursor {
  bytes(length: number): Buffer | undefined
  /** Big-endian, `width` bytes long. */
  number(width: 1 | 2 | 3): number | undefined
  /** Bytes that follow their own length, which is `width` bytes long. */
  vector(width: 1 | 2 | 3): Buffer | undefined
  isAtEnd(): boolean
  /** How many bytes were read. Undefined past the end. */
  position(): number | undefined
}

export function createCursor(source: Buffer): Cursor {
  let at: number | undefined = 0

  const cursor: Cursor = {
    bytes(length) {
      const from = at
      at = from !== undefined && from + length <= source.length ? from + length : undefined
      return from === undefined || at === undefined ? undefined : source.subarray(from, at)
    },
    number: (width) => cursor.bytes(width)?.readUIntBE(0, width),
    vector(width) {
      const length = cursor.number(width)
      return length === undefined ? undefined : cursor.bytes(length)
    },
    isAtEnd: () => at === source.length,
    position: () => at,
  }
  return cursor
}
