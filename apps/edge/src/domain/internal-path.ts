/**
 * Paths of envd that only the node may call. The edge is the only way in for clients, so a path that passes here is open
 * to anyone who knows the sandbox ID.
 *
 * Threats: a path that looks harmless here and that envd reads as `/init`. The edge refuses every spelling that a common
 * parser would read as an internal path, even if that blocks a few unusual paths.
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

/** Returns the internal path that a parser may read from `path`, which may include a query. */
export function internalPathOf(path: string): string | undefined {
  const bare = decodeFully(path.replace(/[?#].*$/s, ''))
  // A URL parser with a base reads `//a/init` as `/init` on host `a`.
  const readings = [cleanPath(bare), cleanPath(bare.replace(/^[/\\]{2,}[^/\\]*/, ''))]
  return readings.find((reading) => internalPaths.has(reading))
}

/** More rounds than any chain of parsers decodes. Bounded, because `%252525…` could take long. */
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
