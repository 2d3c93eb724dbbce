/**
 * A path as the kernel sees it: any bytes except NUL, not necessarily text. Each character holds one byte, so paths
 * sort bytewise and names that are not UTF-8 survive.
 */
export type BytePath = string

export function toBytes(text: string): BytePath {
  return isAscii(text) ? text : Buffer.from(text, 'utf8').toString('latin1')
}

/** Converts to the form that node:fs expects. */
export function toPath(bytes: BytePath): string | Buffer {
  return isAscii(bytes) ? bytes : Buffer.from(bytes, 'latin1')
}

/** Decodes as UTF-8 for display; invalid bytes become U+FFFD. */
export function toText(bytes: BytePath): string {
  return isAscii(bytes) ? bytes : Buffer.from(bytes, 'latin1').toString('utf8')
}

function isAscii(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- the range is the whole of ASCII
  return /^[\x00-\x7f]*$/.test(text)
}
