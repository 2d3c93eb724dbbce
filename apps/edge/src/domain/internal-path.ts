/**
 * Paths of envd that only the node may call. The edge is the one way in from outside, so what it lets through
 * here is open to everybody who knows a sandbox id.
 *
 * Threats: a path spelt so that it looks harmless here and is read as `/init` by envd. Every spelling that
 * some common parser takes for one of these paths is refused, at the price of refusing a few that no one uses.
 */
export const envdPort = 49_983

const internalPaths = new Set([
  '/init',
  '/logs',
  '/prepare',
  '/trust',
  '/freeze',
  '/unfreeze',
  '/collapse',
  '/fsfreeze',
  '/fsthaw',
  '/upgrade',
])

/** The internal path that `path` (as in a request line, query included) may be read as, if any. */
export function internalPathOf(path: string): string | undefined {
  const bare = decodeFully(path.replace(/[?#].*$/s, ''))
  // The second reading is that of a URL parser with a base, to which `//a/init` is `/init` on host `a`.
  const readings = [cleanPath(bare), cleanPath(bare.replace(/^[/\\]{2,}[^/\\]*/, ''))]
  return readings.find((reading) => internalPaths.has(reading))
}

/** More rounds than any chain of parsers undoes. Bounded, since `%252525…` could keep this busy for long. */
const decodingRounds = 3

function decodeFully(path: string): string {
  let decoded = path
  for (let round = 0; round < decodingRounds && decoded.includes('%'); round += 1) {
    decoded = decoded.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    )
  }
  return decoded
}

function cleanPath(path: string): string {
  const kept: string[] = []
  const plain = path
    .replace(/[?#].*$/s, '')
    .replace(/[\p{Cc} ]/gu, '')
    .replaceAll('\\', '/')
  for (const segment of plain.toLowerCase().split('/')) {
    if (segment === '..') kept.pop()
    else if (segment !== '' && segment !== '.') kept.push(segment)
  }
  return `/${kept.join('/')}`
}
