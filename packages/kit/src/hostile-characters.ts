/**
 * Finds characters that mislead a reader. Threats: escape sequences can rewrite the screen, the clipboard or the title of
 * a terminal; direction overrides and invisible characters make one name look like another.
 */
const hostile =
  // oxlint-disable-next-line no-control-regex -- these characters are what the function replaces
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|\p{Surrogate}/gu

/** Replaces control characters (line breaks and tabs included), invisible characters and unpaired surrogates. */
export function replaceHostile(text: string, replacement: (char: string) => string): string {
  return text.replaceAll(hostile, replacement)
}
