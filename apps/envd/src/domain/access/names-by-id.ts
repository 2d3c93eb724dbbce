/** Parses passwd(5) or group(5) into names by ID. The first line with an ID wins. */
export function parseNamesById(text: string): ReadonlyMap<number, string> {
  const names = new Map<number, string>()
  for (const line of text.split('\n')) {
    const [name, , id] = line.split(':')
    if (!name || id === undefined || !/^\d{1,10}$/.test(id)) continue
    if (!names.has(Number(id))) names.set(Number(id), name)
  }
  return names
}
