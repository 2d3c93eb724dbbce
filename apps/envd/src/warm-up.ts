/**
 * Warms envd up before a checkpoint is taken, and again after a restore: loads lazy modules, then makes the calls
 * that clients usually make first. A first call is many times slower than the next, because code is compiled and,
 * after a restore, memory pages are fetched.
 *
 * The calls run against a separate server in a temporary folder, so they leave nothing in settings, logs or the
 * process list.
 */
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { createLog } from './app/log.ts'
import { createProcesses } from './app/processes.ts'
import { openSandbox } from './app/sandbox.ts'
import type { Spawner } from './domain/process/process.ts'
import { settingsFile } from './fs/sandbox/settings-file.ts'
import { variableFiles } from './fs/sandbox/variable-files.ts'
import { createHttpServer } from './http/server.ts'
import type { HttpDeps } from './http/server.ts'
import { createHostNameSetter } from './linux/system-host-name.ts'

export interface WarmUpDeps {
  readonly deps: Omit<HttpDeps, 'prepare'>
  readonly spawner: Spawner
  readonly path: string
  /** Monotonic clock. */
  readonly nowMs: () => number
  /** Must be on tmpfs. */
  readonly folder: string
  readonly load: () => Promise<void>
  /** Frees the memory that loading and the calls leave behind. */
  readonly compact: () => void
}

export async function warmUp(parts: WarmUpDeps): Promise<void> {
  await parts.load()
  await makeCalls(parts)
  parts.compact()
}

async function makeCalls(parts: WarmUpDeps): Promise<void> {
  await using used = new AsyncDisposableStack()
  await mkdir(parts.folder, { recursive: true })
  const folder = await mkdtemp(join(parts.folder, 'warm-up-'))
  used.defer(() => rm(folder, { recursive: true, force: true }))
  await Promise.all(['hostname', 'hosts'].map((name) => writeFile(join(folder, name), 'before\n')))
  const server = await createScratchServer(parts, folder)
  const socketPath = join(folder, 'socket')
  server.listen(socketPath)
  await once(server, 'listening')
  used.defer(() => void server.close())
  // An image may lack a shell or even root. A failed call only means that the real one is slower later.
  for (const call of warmUpCalls(folder)) await send(socketPath, call).catch(parts.deps.report)
}

/** Creates a second server with its own settings, log and processes, which shares all other parts with envd. */
async function createScratchServer({ deps, spawner, path, nowMs }: WarmUpDeps, folder: string) {
  const { clock } = deps
  const log = createLog({ clock, nowMs })
  const sandbox = await openSandbox({
    store: settingsFile(join(folder, 'envd.json')),
    publish: variableFiles(join(folder, 'variables')),
    clock,
    setHostName: createHostNameSetter(() => ({ setHostName: () => 0 }), folder),
    updateForwards: () => Promise.resolve(),
    stepClock: () => Promise.resolve(),
    trust: () => Promise.resolve(),
    onSandboxIdChange: () => log.clear(),
  })
  const processes = createProcesses({ spawner, path, nowMs, log })
  return createHttpServer({
    ...deps,
    log,
    sandbox,
    processes,
    initToken: token,
    prepare: () => Promise.resolve(),
  })
}

/** Token of the temporary server. Only root can reach its socket. */
const token = 'warm-up'

interface Call {
  readonly path: string
  readonly type?: string
  readonly body?: string | Buffer
}

/** Calls in the form in which published clients make them. */
function warmUpCalls(folder: string): Call[] {
  const file = `/files?username=root&path=${encodeURIComponent(join(folder, 'file'))}`
  const form =
    '--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\ny\r\n--x--\r\n'
  const rpc = (path: string, message: unknown): Call => ({
    path,
    type: 'application/json',
    body: JSON.stringify(message),
  })
  const command = (cmd: string): Call => ({
    path: '/process.Process/Start',
    type: 'application/connect+json',
    body: frame({ process: { cmd, args: ['-c', 'echo x; exit'], cwd: '/' }, stdin: false }),
  })
  return [
    rpc('/init', { accessToken: token, sandboxId: 'warm-up', timestamp: new Date() }),
    command('/bin/bash'),
    command('/bin/sh'),
    rpc('/process.Process/List', {}),
    { path: file, type: 'multipart/form-data; boundary=x', body: form },
    { path: file, type: 'application/octet-stream', body: 'y' },
    { path: file },
    rpc('/filesystem.Filesystem/Stat', { path: folder }),
    rpc('/filesystem.Filesystem/ListDir', { path: folder, depth: 1 }),
    { path: '/metrics' },
  ]
}

function frame(message: unknown): Buffer {
  const body = Buffer.from(JSON.stringify(message))
  const head = Buffer.alloc(5)
  head.writeUInt32BE(body.length, 1)
  return Buffer.concat([head, body])
}

async function send(socketPath: string, { path, type, body }: Call): Promise<void> {
  const outgoing = request({
    socketPath,
    path,
    method: body === undefined ? 'GET' : 'POST',
    agent: false,
    headers: {
      // Node.js tests whether a host is an IP address. The pattern for IPv6, compiled, takes 160 KB.
      host: '127.0.0.1',
      authorization: `Basic ${Buffer.from('root:').toString('base64')}`,
      'x-access-token': token,
      'x-init-token': token,
      'connect-protocol-version': '1',
      // Kills a shell that hangs.
      'connect-timeout-ms': '5000',
      ...(type !== undefined && { 'content-type': type }),
      ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
    },
  }).end(body)
  const [response] = await once(outgoing, 'response')
  const answer = await buffer(response)
  if (response.statusCode >= 300) {
    throw new Error(`Warm-up call ${path} returned ${response.statusCode}: ${answer.toString()}`)
  }
}
