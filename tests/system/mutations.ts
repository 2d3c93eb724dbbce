/** Generates requests to the routes of envd, and mutates them with seeded randomness. */
import { gzipSync } from 'node:zlib'
import type { Call } from './wire.ts'
import { basic, frame } from './wire.ts'

export type Random = (limit: number) => number

/** Creates a deterministic generator: a mixed Weyl sequence, evenly distributed. */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0
  return (limit) => {
    state = (state + 0x9e37_79b9) >>> 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0_aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a_2d97)
    return ((mixed ^ (mixed >>> 15)) >>> 0) % limit
  }
}

interface Request extends Call {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

const folder = '/tmp/fuzz'

/** Timeouts of Connect and gRPC: a stream ends after one second even if a mutation changes its protocol. */
const shortTimeouts = { 'Connect-Timeout-Ms': '1000', 'Grpc-Timeout': '1S' }

function unary(method: string, message: object): Request {
  const headers = { 'Content-Type': 'application/json', ...shortTimeouts }
  return { method: 'POST', path: `/${method}`, headers, body: Buffer.from(JSON.stringify(message)) }
}

function stream(method: string, ...messages: object[]): Request {
  const headers = { 'Content-Type': 'application/connect+json', ...shortTimeouts }
  const body = Buffer.concat(messages.map((message) => frame(JSON.stringify(message))))
  return { method: 'POST', path: `/${method}`, headers, body }
}

function plain(method: string, path: string, type = '', body: string | Uint8Array = ''): Request {
  return { method, path, headers: type ? { 'Content-Type': type } : {}, body: Buffer.from(body) }
}

const form = `--B\r\nContent-Disposition: form-data; name="file"; filename="${folder}/a"\r\n\r\nx\r\n--B--\r\n`
const process = { cmd: '/bin/echo', args: ['-n', 'x'], envs: { A: 'b' }, cwd: '/tmp' }
const selector = { process: { pid: 1_000_000 } }

const requests: readonly Request[] = [
  stream('process.Process/Start', { process, stdin: false, tag: 't' }),
  stream('process.Process/Start', { process, pty: { size: { cols: 80, rows: 24 } } }),
  stream('process.Process/Connect', selector),
  stream(
    'process.Process/StreamInput',
    { start: selector },
    { data: { input: { stdin: 'eA==' } } },
  ),
  unary('process.Process/List', {}),
  unary('process.Process/Update', { ...selector, pty: { size: { cols: 1, rows: 1 } } }),
  unary('process.Process/SendInput', { ...selector, input: { pty: 'eA==' } }),
  unary('process.Process/SendSignal', { ...selector, signal: 'SIGNAL_SIGTERM' }),
  unary('process.Process/CloseStdin', { process: { tag: 'none' } }),
  unary('filesystem.Filesystem/Stat', { path: `${folder}/a` }),
  unary('filesystem.Filesystem/MakeDir', { path: `${folder}/b/c` }),
  unary('filesystem.Filesystem/Move', { source: `${folder}/a`, destination: `${folder}/d` }),
  unary('filesystem.Filesystem/ListDir', { path: folder, depth: 3 }),
  unary('filesystem.Filesystem/Remove', { path: `${folder}/b` }),
  stream('filesystem.Filesystem/WatchDir', { path: folder, recursive: true, includeEntry: true }),
  unary('filesystem.Filesystem/CreateWatcher', { path: folder, allowNetworkMounts: true }),
  unary('filesystem.Filesystem/GetWatcherEvents', { watcherId: 'w00000000000000000000' }),
  unary('filesystem.Filesystem/RemoveWatcher', { watcherId: 'w00000000000000000000' }),
  // Protobuf string in field 1, the path of Stat and ListDir.
  plain('POST', '/filesystem.Filesystem/Stat', 'application/proto', `\n\x09${folder}`),
  plain('POST', '/filesystem.Filesystem/ListDir', 'application/proto', `\n\x09${folder}\x10\x02`),
  plain('GET', `/files?path=${folder}/a&username=user`),
  plain('HEAD', `/files?path=${folder}/a`),
  plain('POST', '/files', 'multipart/form-data; boundary=B', form),
  plain('POST', `/files?path=${folder}/e/f`, 'application/octet-stream', 'some bytes'),
  plain(
    'POST',
    '/files/compose',
    'application/json',
    JSON.stringify({ source_paths: [`${folder}/a`], destination: `${folder}/g` }),
  ),
  plain('GET', '/metrics'),
  plain('GET', '/envs'),
  plain('GET', '/health'),
  plain('POST', '/init', 'application/json', '{"envVars":{"A":"b"}}'),
]

/** Returns one of the requests with one to three mutations. */
export function mutatedRequest(random: Random): Request {
  let request = pick(random, requests)
  for (let remaining = 1 + random(3); remaining > 0; remaining -= 1) {
    request = pick(random, mutations)(request, random)
  }
  return request
}

type Mutation = (request: Request, random: Random) => Request

const mutations: readonly Mutation[] = [
  onBody((body, random) => body.with(random(body.length), random(256))),
  onBody((body, random) => body.with(random(body.length), body.at(random(body.length)) ?? 0)),
  onBody((body, random) => body.subarray(0, random(body.length))),
  onBody((body, random) => body.subarray(random(body.length))),
  onBody((body, random) => Buffer.concat([body, body.subarray(random(body.length))])),
  onBody((body, random) =>
    Buffer.concat([body.subarray(0, random(body.length)), noise(random), body]),
  ),
  onBody((body, random) => {
    // A wrong length in the header of the first frame.
    const changed = Buffer.from(body)
    if (changed.length >= 5) changed.writeUInt32BE(random(2) ? 0xffff_ffff : random(1 << 20), 1)
    return changed
  }),
  onBody((body) => gzipSync(body)),
  (request, random) => ({ ...request, method: pick(random, methods) }),
  (request, random) => ({ ...request, path: pick(random, requests).path }),
  (request, random) => {
    const position = 1 + random(request.path.length)
    const path =
      request.path.slice(0, position) + pick(random, oddPathParts) + request.path.slice(position)
    return { ...request, path }
  },
  (request, random) => ({
    ...request,
    headers: { ...request.headers, 'Content-Type': pick(random, contentTypes) },
  }),
  (request, random) => ({
    ...request,
    headers: { ...request.headers, ...pick(random, oddHeaders) },
  }),
]

function onBody(change: (body: Buffer, random: Random) => Uint8Array): Mutation {
  return (request, random) =>
    request.body.length === 0
      ? request
      : { ...request, body: Buffer.from(change(request.body, random)) }
}

function noise(random: Random): Buffer {
  return Buffer.from(Array.from({ length: 1 + random(64) }, () => random(256)))
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

const oddPathParts = ['%00', '%ff', '%', '//', '/../', '?', '&path=', '=', '~', 'x'.repeat(5000)]

const contentTypes = [
  '',
  'application/json',
  'application/proto',
  'application/connect+json',
  'application/connect+proto',
  'application/grpc',
  'application/grpc-web+json',
  'application/octet-stream',
  'multipart/form-data',
  'multipart/form-data; boundary="',
  'text/plain; charset=x',
]

const oddHeaders: readonly Readonly<Record<string, string>>[] = [
  { 'Content-Encoding': 'gzip' },
  { 'Content-Encoding': 'br, gzip' },
  { 'Connect-Content-Encoding': 'gzip' },
  { 'Connect-Accept-Encoding': 'gzip,,x' },
  { 'Connect-Protocol-Version': '2' },
  { 'Accept-Encoding': 'gzip;q=x, *;q=0' },
  { Authorization: basic('root') },
  { Authorization: basic('no\nbody') },
  { Authorization: 'Basic ====' },
  { 'Keepalive-Ping-Interval': '-1' },
  { Range: 'bytes=-1,5-,99999999999999999999-' },
  { 'If-Modified-Since': 'never' },
  { 'X-Metadata-': 'x' },
  { 'X-Metadata-A': 'x'.repeat(5000) },
  { 'User-Agent': 'connect-python' },
  { Expect: '100-continue' },
]

function pick<T>(random: Random, from: readonly T[]): T {
  const item = from[random(from.length)]
  if (item === undefined) throw new Error('nothing to pick from')
  return item
}
