/** As much of DER (X.690) as certificates of a fixed form take. Nothing is read here, only written. */

export function sequence(...items: readonly Buffer[]): Buffer {
  return element(0x30, ...items)
}

export function set(...items: readonly Buffer[]): Buffer {
  return element(0x31, ...items)
}

/** Of whole bytes without a sign; `bytes` does not begin with a zero. */
export function integer(bytes: Buffer): Buffer {
  const isNegative = (bytes[0] ?? 0) >= 0x80
  return element(0x02, ...(isNegative ? [Buffer.from([0]), bytes] : [bytes]))
}

export function boolean(value: boolean): Buffer {
  return element(0x01, Buffer.from([value ? 0xff : 0]))
}

/** `unused` bits of the last byte do not count. */
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
  return element(0x06, Buffer.from([first * 40 + second, ...others.flatMap(inSevens)]))
}

/** Two digits for the year up to 2049, four from then on (RFC 5280, 4.1.2.5). */
export function time(date: Date): Buffer {
  const digits = date.toISOString().replaceAll(/[-:T]|\.\d+/g, '')
  return date.getUTCFullYear() < 2050
    ? element(0x17, Buffer.from(digits.slice(2)))
    : element(0x18, Buffer.from(digits))
}

/** What has a number instead of a type of its own. */
export function explicit(number: number, content: Buffer): Buffer {
  return element(0xa0 + number, content)
}

/** As above, where the type is known and its own tag is left out. */
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

/** Seven bits in each byte, the eighth set in all but the last. */
function inSevens(number: number): number[] {
  const bytes = [number & 0x7f]
  for (let rest = number >> 7; rest > 0; rest >>= 7) bytes.unshift((rest & 0x7f) | 0x80)
  return bytes
}
