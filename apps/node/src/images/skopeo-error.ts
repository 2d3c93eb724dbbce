/**
 * Extracts the error message of skopeo for the author of a template. The message contains no password. Addresses of name
 * servers, proxies and registries, and paths of this machine, are removed.
 */
export function readSkopeoError(stderr: string): string {
  const [logged = ''] = /(?<=msg=")(?:[^"\\]|\\.)*/.exec(stderr) ?? []
  return logged
    .replaceAll('\\"', '"')
    .replace(/^Error parsing image name "[^"]*": /, '')
    .replaceAll(nameServer, '$1')
    .replaceAll(connection, '$1')
    .replaceAll(hostPath, '…')
    .slice(0, 500)
}

const address = String.raw`(?:\d+(?:\.\d+){3}|\[[0-9a-fA-F:.]+(?:%\w+)?\]):\d+`
/** Go: `lookup example.com on 10.0.0.2:53: no such host`. */
const nameServer = new RegExp(String.raw`(\blookup \S+) on ${address}`, 'g')
/** Go: `dial tcp 10.0.0.3:443: …`, `read udp 10.0.0.5:4021->10.0.0.2:53: …`. */
const connection = new RegExp(String.raw`(\b\w+ (?:tcp|udp)[46]?) ${address}(?:->${address})?`, 'g')
/** Paths of URLs and images follow a host name, a colon or a slash, so they stay. */
const hostPath = /(?<![\w.:/-])\/(?:etc|home|mnt|opt|proc|root|run|srv|tmp|usr|var)\/[^\s:"\\]*/g
