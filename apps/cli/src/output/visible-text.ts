/** Makes text from sandboxes, builds and servers safe to print on a terminal. */
import { replaceHostile } from '@atoll/kit/hostile-characters'

/** Replaces hostile characters, line breaks and tabs included, by escapes such as `\x1b` and `\u202e`. */
export function visibleName(text: string): string {
  return replaceHostile(text, escaped)
}

/** Does the same for text of several lines: keeps line breaks and tabs, and drops a `\r` before a line break. */
export function visibleText(text: string): string {
  return replaceHostile(text.replaceAll('\r\n', '\n'), (char) =>
    char === '\n' || char === '\t' ? char : escaped(char),
  )
}

/** Prepares output of programs for `visibleText`: drops colours, and turns progress that overwrites itself into lines. */
export function plainOutput(text: string): string {
  // oxlint-disable-next-line no-control-regex -- colours begin with a control character
  return text.replaceAll(/\u001b\[[0-9;:]{0,40}m/g, '').replaceAll(/\r+(?=[^\n])/g, '\n')
}

/** Escapes what `JSON.stringify` leaves as it is. The result means the same. */
export function visibleJson(json: string): string {
  return replaceHostile(json, (char) => (char === '\n' ? char : unicodeEscape(char)))
}

function escaped(char: string): string {
  const code = char.charCodeAt(0)
  return code < 0x100 ? String.raw`\x${hex(code, 2)}` : unicodeEscape(char)
}

function unicodeEscape(char: string): string {
  return String.raw`\u${hex(char.charCodeAt(0), 4)}`
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, '0')
}
