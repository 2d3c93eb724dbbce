/**
 * Guesses the media type from the first bytes, for files without a known extension. Follows
 * https://mimesniff.spec.whatwg.org.
 */
export function sniffMediaType(head: Uint8Array): string {
  const start = head.subarray(0, sniffedBytes)
  const text = Buffer.from(start).toString('latin1')
  const known =
    patterns.find(([pattern]) => pattern.test(text)) ??
    prefixes.find(([prefix]) => text.startsWith(prefix))
  if (known) return known[1]
  return start.some(isBinary) ? 'application/octet-stream' : 'text/plain; charset=utf-8'
}

const sniffedBytes = 512

/** Control characters that text never contains. */
function isBinary(byte: number): boolean {
  return byte < 0x20 && !textControls.has(byte)
}

/** Tab, line feed, form feed, carriage return, escape. */
const textControls: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0c, 0x0d, 0x1b])

const markup = 'html|head|body|script|iframe|h1|div|font|table|a|style|title|b|br|p'

const patterns: readonly (readonly [RegExp, string])[] = [
  [new RegExp(String.raw`^\s*<(?:!doctype html|${markup})[ >]`, 'i'), 'text/html; charset=utf-8'],
  [/^\s*<!--/, 'text/html; charset=utf-8'],
  [/^\s*<\?xml/, 'text/xml; charset=utf-8'],
  [/^RIFF[^]{4}WEBPVP/, 'image/webp'],
  [/^RIFF[^]{4}WAVE/, 'audio/wave'],
  [/^[^]{4}ftyp(?:mp4|isom|M4V|avc)/, 'video/mp4'],
]

const prefixes: readonly (readonly [string, string])[] = [
  ['\xfe\xff', 'text/plain; charset=utf-16be'],
  ['\xff\xfe', 'text/plain; charset=utf-16le'],
  ['\xef\xbb\xbf', 'text/plain; charset=utf-8'],
  ['%PDF-', 'application/pdf'],
  ['\x89PNG\r\n\x1a\n', 'image/png'],
  ['GIF87a', 'image/gif'],
  ['GIF89a', 'image/gif'],
  ['\xff\xd8\xff', 'image/jpeg'],
  ['BM', 'image/bmp'],
  ['ID3', 'audio/mpeg'],
  ['OggS\0', 'application/ogg'],
  ['\x1a\x45\xdf\xa3', 'video/webm'],
  ['wOFF', 'font/woff'],
  ['wOF2', 'font/woff2'],
  ['\x1f\x8b\x08', 'application/x-gzip'],
  ['PK\x03\x04', 'application/zip'],
  ['\0asm', 'application/wasm'],
]
