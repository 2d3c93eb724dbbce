/** Makes text from sandboxes safe to read. Threats: besides hostile characters, very long lines make the page slow. */
import { replaceHostile } from '@atoll/kit/hostile-characters'

/** Replaces hostile characters by their code points: `a<U+202E>b`. Line breaks and tabs become symbols. */
export function visibleName(text: string, maxLength = 300): string {
  const visible = text.replaceAll('\n', '⏎').replaceAll('\t', '⇥')
  return shorten(replaceHostile(visible, codePoint), maxLength)
}

const escapeSequences =
  // oxlint-disable-next-line no-control-regex -- terminal escape sequences begin with a control character
  /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]{0,4096}(?:\u0007|\u001b\\)|[@-Z\\-_])/g

/** Shows one line of output: without terminal escape sequences, with hostile characters visible, shortened. */
export function visibleLine(text: string, maxLength = 4_000): string {
  const start = text.length > maxLength * 4 ? text.slice(0, maxLength * 4) : text
  const plain = start.replaceAll(escapeSequences, '').replaceAll('\r', '')
  const shown = replaceHostile(plain, (char) =>
    char === '\n' || char === '\t' ? char : codePoint(char),
  )
  const rest = text.length - maxLength
  return shown.length > maxLength
    ? `${shown.slice(0, maxLength)}… (${rest.toLocaleString('en')} more characters)`
    : shown
}

function codePoint(char: string): string {
  return `<U+${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}>`
}

function shorten(text: string, maxLength: number): string {
  return text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
}
