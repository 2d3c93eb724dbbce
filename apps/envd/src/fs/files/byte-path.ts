/**
 * Paths as the kernel has them: any bytes but NUL, which need not be text. A byte path is a string with one letter for
 * each byte. It sorts as bytes do, and nothing is lost of names that are not UTF-8.
 */
export type BytePath = string

export function toBytes(text: string): BytePath {
  return isAscii(text) ? text : Buffer.from(text, 'utf8').toString('latin1')
}

/** As the functions of node:fs take it. */
export function toPath(bytes: BytePath): string | Buffer {
  return isAscii(bytes) ? bytes : Buffer.from(bytes, 'latin1')
}

/** For people: what is not UTF-8 becomes U+FFFD. */
export function toText(bytes: BytePath): string {
  return isAscii(bytes) ? bytes : Buffer.from(bytes, 'latin1').toString('utf8')
}

function isAscii(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- the range is the whole of ASCII
  return /^[\x00-\x7f]*$/.test(text)
}
