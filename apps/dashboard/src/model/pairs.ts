/** Parses lines of `NAME=value`. Returns the first wrong line instead if there is one. */
export function parsePairs(
  text: string,
): { readonly pairs: Record<string, string> } | { readonly mistake: string } {
  const pairs: Record<string, string> = {}
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue
    const at = line.indexOf('=')
    if (at < 1) return { mistake: `“${line.slice(0, 60)}” is not NAME=value` }
    pairs[line.slice(0, at).trim()] = line.slice(at + 1)
  }
  return { pairs }
}

/** Parses one entry per line or separated by commas. */
export function parseEntries(text: string): string[] {
  return text
    .split(/[\n,]/)
    .map((entry) => entry.trim())
    .filter(Boolean)
}
