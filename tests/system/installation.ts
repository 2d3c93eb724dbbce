import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { run } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'

/**
 * A whole installation of its own, as a user would start it: its own data, port and addresses, so that it disturbs
 * no other on this machine. Layers are shared, because building one takes a minute.
 */
export interface Installation extends AsyncDisposable {
  readonly url: string
  readonly dataDir: string
  readonly apiKey: string
  readonly accessToken: string
  readonly teamId: string
  /** What an unmodified SDK needs to be told. */
  readonly connection: {
    readonly apiUrl: string
    readonly sandboxUrl: string
    readonly apiKey: string
  }
  /** What the command lines need in their environment. */
  readonly env: NodeJS.ProcessEnv
  readonly pid: () => number
  /** All that the server has printed so far. */
  output(): string
  /** Ctrl-C, or another signal; resolves with the exit code. */
  interrupt(signal?: 'SIGINT' | 'SIGTERM'): Promise<number | null>
  /** SIGKILL: nothing is saved, nothing is said. One that is still starting fails its `start`. */
  crash(): Promise<void>
  /** Starts it again, from now on with these settings besides; `from` is a checkout of another release. */
  start(changed?: Record<string, string>, from?: string): Promise<void>
  /** `atoll down`. */
  down(): Promise<string>
}

export const layersDir = '/var/lib/atoll/layers'
export const repository = join(import.meta.dirname, '../..')
export const atoll = join(repository, 'bin/atoll')

let installations = 0

export async function install(
  settings: Record<string, string> = {},
  options: {
    readonly from?: string
    /** How many files the server may have open; undefined: as many as this process. */
    readonly descriptorLimit?: number | undefined
  } = {},
): Promise<Installation> {
  const dataDir = settings['ATOLL_DATA_DIR'] ?? (await mkdtemp('/var/tmp/atoll-test-'))
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const env = {
    ...process.env,
    ATOLL_DATA_DIR: dataDir,
    ATOLL_LAYERS_DIR: layersDir,
    ATOLL_LISTEN: `127.0.0.1:${port}`,
    ATOLL_SUBNET: subnet(),
    // Most tests count what they made themselves.
    ATOLL_POOL_MEMORY_MB: '0',
    ...settings,
  }
  const remove = async () => {
    await run(atoll, ['down'], { env })
    await rm(dataDir, { recursive: true, force: true })
  }
  const { descriptorLimit } = options
  let server = launch(env, { from: options.from, descriptorLimit })
  await untilReady(server, env).catch(async (error: unknown) => {
    await remove()
    throw error
  })
  const { apiKey, accessToken, teamId }: Record<'apiKey' | 'accessToken' | 'teamId', string> =
    JSON.parse(await readFile(join(dataDir, 'credentials.json'), 'utf8'))

  async function end(signal: NodeJS.Signals): Promise<number | null> {
    const { child } = server
    if (hasEnded(child)) return child.exitCode
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
    return child.exitCode
  }

  return {
    url,
    dataDir,
    apiKey,
    accessToken,
    teamId,
    connection: { apiUrl: url, sandboxUrl: url, apiKey },
    env: { ...env, E2B_API_URL: url, E2B_SANDBOX_URL: url, E2B_API_KEY: apiKey },
    pid: () => server.child.pid ?? 0,
    output: () => server.output(),
    interrupt: (signal = 'SIGINT') => end(signal),
    crash: async () => void (await end('SIGKILL')),
    async start(changed = {}, from) {
      Object.assign(env, changed)
      server = launch(env, { from, descriptorLimit })
      await untilReady(server, env)
    },
    down: () => run(atoll, ['down'], { env }),
    async [Symbol.asyncDispose]() {
      await end('SIGTERM')
      await remove()
    },
  }
}

interface Server {
  readonly child: ChildProcess
  output(): string
}

interface LaunchOptions {
  readonly from?: string | undefined
  readonly descriptorLimit?: number | undefined
}

function launch(
  env: NodeJS.ProcessEnv,
  { from = repository, descriptorLimit }: LaunchOptions,
): Server {
  // Straight to Node.js: a signal or a kill must reach the server itself, not a shell before it.
  const limit = descriptorLimit ? ['prlimit', `--nofile=${descriptorLimit}`] : []
  const command = [process.execPath, join(from, 'apps/cli/src/main.ts'), 'up']
  const [program = '', ...args] = [...limit, ...command]
  const child = spawn(program, args, {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  }
  return { child, output: () => output }
}

async function untilReady({ child, output }: Server, env: NodeJS.ProcessEnv): Promise<void> {
  const credentials = join(env['ATOLL_DATA_DIR'] ?? '', 'credentials.json')
  await waitFor(
    'the server to be ready',
    async () => {
      if (hasEnded(child)) throw new Error(`the server ended:\n${output()}`)
      return fetch(`http://${env['ATOLL_LISTEN']}/health`).then(
        (reply) => reply.ok && readFile(credentials).then(() => true),
        () => false,
      )
    },
    { timeoutMs: 300_000, intervalMs: 50 },
  )
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

/** Test installations take networks of 1,024 addresses from a range that the default does not touch. */
function subnet(): string {
  const number = (process.pid * 7 + installations++) % 16_384
  const base = number * 1024
  return `10.${64 + (Math.floor(base / 65_536) % 128)}.${Math.floor(base / 256) % 256}.0/22`
}

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  probe.close()
  await once(probe, 'close')
  return address.port
}
