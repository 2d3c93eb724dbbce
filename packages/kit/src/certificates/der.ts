/** DER encoder (X.690) for the few types that our certificates use. Cannot decode. */

export function sequence(...items: readonly Buffer[]): Buffer {
  return element(0x30, ...items)
}

export function set(...items: readonly Buffer[]): Buffer {
  return element(0x31, ...items)
}

/** Encodes an unsigned integer. `bytes` must not begin with a zero byte. */
export function integer(bytes: Buffer): Buffer {
  const isNegative = (bytes[0] ?? 0) >= 0x80
  return element(0x02, ...(isNegative ? [Buffer.from([0]), bytes] : [bytes]))
}

export function boolean(value: boolean): Buffer {
  return element(0x01, Buffer.from([value ? 0xff : 0]))
}

/** `unused` is the number of ignored bits in the last byte. */
export function bitString(bytes: Buffer, unused = 0): Buffer {
  return element(0x03, Buffer.from([unused]), bytes)
}

export function octetString(bytes: Buffer): Buffer {
  return element(0x04, bytes)
}

export function utf8String(text: string): Buffer {
  return element(0x0c, Buffer.from(text))
}

export function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...others] = dotted.split('.').map(Number)
  return element(0x06, Buffer.from([first * 40 + second, ...others.flatMap(toBase128)]))
}

/** Encodes the year with two digits up to 2049 and with four from 2050 on (RFC 5280, 4.1.2.5). */
export function time(date: Date): Buffer {
  const digits = date.toISOString().replaceAll(/[-:T]|\.\d+/g, '')
  return date.getUTCFullYear() < 2050
    ? element(0x17, Buffer.from(digits.slice(2)))
    : element(0x18, Buffer.from(digits))
}

/** Wraps a complete element in a context-specific tag. */
export function explicit(number: number, content: Buffer): Buffer {
  return element(0xa0 + number, content)
}

/** Replaces the tag of a primitive element by a context-specific one. */
export function implicit(number: number, bytes: Buffer): Buffer {
  return element(0x80 + number, bytes)
}

function element(tag: number, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content)
  return Buffer.concat([Buffer.from([tag, ...lengthOf(body)]), body])
}

function lengthOf({ length }: Buffer): number[] {
  if (length < 0x80) return [length]
  return length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
}

/** Encodes seven bits per byte; the high bit is set in all bytes but the last. */
function toBase128(number: number): number[] {
  const bytes = [number & 0x7f]
  for (let rest = number >> 7; rest > 0; rest >>= 7) bytes.unshift((rest & 0x7f) | 0x80)
  return bytes
}
