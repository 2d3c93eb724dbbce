/** Parses `NAME=value` pairs separated by white space. Returns undefined if one of them is not a variable. */
export function parseVariables(text: string): Readonly<Record<string, string>> | undefined {
  const pairs = text.split(/\s+/).filter((word) => word !== '')
  const found = pairs.map((pair) => /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/s.exec(pair))
  if (found.includes(null)) return undefined
  return Object.fromEntries(found.map((match) => [match?.[1] ?? '', match?.[2] ?? '']))
}
