/**
 * Reads consecutive binary fields. After a read past the end, this and all later fields are undefined and `isAtEnd`
 * stays false, so callers need to check only the last result.
 */
export interface Cursor {
  bytes(length: number): Buffer | undefined
  /** Reads a big-endian integer of `width` bytes. */
  number(width: 1 | 2 | 3): number | undefined
  /** Reads a length of `width` bytes, then that many bytes. */
  vector(width: 1 | 2 | 3): Buffer | undefined
  isAtEnd(): boolean
  /** Number of bytes read so far. Undefined after a read past the end. */
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
