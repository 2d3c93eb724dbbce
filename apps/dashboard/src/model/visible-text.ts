/**
 * Makes text from sandboxes safe to read. Threats: direction overrides and invisible characters make a name look like
 * another one, and very long lines make the page slow.
 */
const misleading =
  // oxlint-disable-next-line no-control-regex -- these characters are what the function replaces
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g

/** Replaces misleading characters by their code points: `a<U+202E>b`. Line breaks in names become visible too. */
export function visibleName(text: string, maxLength = 300): string {
  const shown = text.replaceAll('\n', '⏎').replaceAll('\t', '⇥').replaceAll(misleading, codePoint)
  return shorten(shown, maxLength)
}

const escapeSequences =
  // oxlint-disable-next-line no-control-regex -- terminal escape sequences begin with a control character
  /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]{0,4096}(?:\u0007|\u001b\\)|[@-Z\\-_])/g

/** Shows one line of output: without terminal escape sequences, with misleading characters visible, shortened. */
export function visibleLine(text: string, maxLength = 4_000): string {
  const start = text.length > maxLength * 4 ? text.slice(0, maxLength * 4) : text
  const shown = start
    .replaceAll(escapeSequences, '')
    .replaceAll('\r', '')
    .replaceAll(misleading, codePoint)
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
