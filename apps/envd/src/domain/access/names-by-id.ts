/** Names of ids, as passwd(5) and group(5) give them: the first line that has an id names it. */
export function parseNamesById(text: string): ReadonlyMap<number, string> {
  const names = new Map<number, string>()
  for (const line of text.split('\n')) {
    const [name, , id] = line.split(':')
    if (!name || id === undefined || !/^\d{1,10}$/.test(id)) continue
    if (!names.has(Number(id))) names.set(Number(id), name)
  }
  return names
}
