/**
 * Makes the daemon ready to be saved, or to be handed out after it was restored: loads what is loaded at the first need,
 * then does once what callers will do. The first time of anything is many times slower, since code is compiled and, in a
 * restored sandbox, every page of memory fetched. It all happens in a folder of its own and beside the real sandbox:
 * nothing of it is seen in settings, log or list of processes.
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
  /** Monotonic. */
  readonly nowMs: () => number
  /** In memory. */
  readonly folder: string
  readonly load: () => Promise<void>
}

export async function prepare(parts: WarmUpDeps): Promise<void> {
  await parts.load()
  await using used = new AsyncDisposableStack()
  await mkdir(parts.folder, { recursive: true })
  const folder = await mkdtemp(join(parts.folder, 'rehearsal-'))
  used.defer(() => rm(folder, { recursive: true, force: true }))
  await Promise.all(['hostname', 'hosts'].map((name) => writeFile(join(folder, name), 'before\n')))
  const server = await createScratchServer(parts, folder)
  const socketPath = join(folder, 'socket')
  server.listen(socketPath)
  await once(server, 'listening')
  used.defer(() => void server.close())
  // An image may lack a shell, or even root: what fails here is slower later, no more.
  for (const call of warmUpCalls(folder)) await send(socketPath, call).catch(parts.deps.report)
}

/** A daemon of its own that shares what does the work. */
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

/** Nobody else can reach the socket: its folder is for its owner alone. */
const token = 'warm-up'

interface Call {
  readonly path: string
  readonly type?: string
  readonly body?: string | Buffer
}

/** As published clients make them. */
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
      authorization: `Basic ${Buffer.from('root:').toString('base64')}`,
      'x-access-token': token,
      'x-init-token': token,
      'connect-protocol-version': '1',
      // A shell that hangs is killed then.
      'connect-timeout-ms': '5000',
      ...(type !== undefined && { 'content-type': type }),
      ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
    },
  }).end(body)
  const [response] = await once(outgoing, 'response')
  const answer = await buffer(response)
  if (response.statusCode >= 300) {
    throw new Error(`${path} was answered with ${response.statusCode}: ${answer.toString()}`)
  }
}
