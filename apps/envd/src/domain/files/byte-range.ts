/** Bytes that a Range header asks for (RFC 9110, 14). */
export interface ByteRange {
  readonly start: number
  readonly length: number
}

/**
 * Returns undefined to send the whole file. Multiple ranges are ignored, as the RFC permits, and so is any range of
 * an empty file.
 */
export function selectRange(
  header: string | undefined,
  size: number,
): ByteRange | 'unsatisfiable' | undefined {
  const spec = /^\s*bytes\s*=(.*)$/i.exec(header ?? '')?.[1]
  if (spec === undefined || spec.includes(',')) return undefined
  const match = /^(\d*)-(\d*)$/.exec(spec.replaceAll(/\s/g, ''))
  const [from = '', to = ''] = match?.slice(1) ?? []
  if (from === '' && to === '') return 'unsatisfiable'
  if (size === 0) return undefined
  if (from === '') return lastBytes(Number(to), size)
  const start = Number(from)
  const end = to === '' ? size - 1 : Math.min(Number(to), size - 1)
  return start >= size || end < start ? 'unsatisfiable' : { start, length: end - start + 1 }
}

function lastBytes(wanted: number, size: number): ByteRange | 'unsatisfiable' {
  const length = Math.min(wanted, size)
  return length === 0 ? 'unsatisfiable' : { start: size - length, length }
}
