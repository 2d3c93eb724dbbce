import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '@atoll/kit/run'
import { shareEnvd } from '@atoll/node/testing/shared-envd'
import { freePort } from '@atoll/kit/testing/free-port'
import { waitFor } from '@atoll/kit/wait'
import { atollProgram } from '../../tools/bundle/programs.mjs'

/**
 * Separate installation, started like a user would: with its own data, port and addresses, so that it disturbs no other
 * on this machine. Layers are shared, because building one takes a minute, and so is the build of envd.
 */
export interface Installation extends AsyncDisposable {
  readonly url: string
  readonly dataDir: string
  readonly apiKey: string
  readonly accessToken: string
  readonly teamId: string
  /** Options for an unmodified SDK. */
  readonly connection: {
    readonly apiUrl: string
    readonly sandboxUrl: string
    readonly apiKey: string
  }
  /** Environment for command-line clients. */
  readonly env: NodeJS.ProcessEnv
  readonly pid: () => number
  /** Returns all output of the server so far. */
  output(): string
  /** Sends Ctrl-C or another signal; resolves with the exit code. */
  interrupt(signal?: 'SIGINT' | 'SIGTERM'): Promise<number | null>
  /** Sends SIGKILL. A server that is still starting fails its `start`. */
  crash(): Promise<void>
  /** Starts the server again, with changed settings from now on; `from` is a checkout of another release. */
  start(changedSettings?: Record<string, string>, from?: string): Promise<void>
  /** Runs `atoll down`. */
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
    /** Limit on open files of the server; undefined: the limit of this process. */
    readonly descriptorLimit?: number | undefined
  } = {},
): Promise<Installation> {
  const dataDir = settings['ATOLL_DATA_DIR'] ?? (await mkdtemp('/var/tmp/atoll-test-'))
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const env = createEnvironment(dataDir, { ATOLL_LISTEN: `127.0.0.1:${port}`, ...settings })
  const remove = async () => {
    await run(atoll, ['down'], { env })
    await rm(dataDir, { recursive: true, force: true })
  }
  const { descriptorLimit } = options
  if (options.from === undefined) await shareEnvd(dataDir)
  let server = launch(env, { from: options.from, descriptorLimit })
  await waitUntilReady(server, env).catch(async (error: unknown) => {
    await remove()
    throw error
  })
  const { apiKey, accessToken, teamId } = await readCredentials(dataDir)

  async function stop(signal: NodeJS.Signals): Promise<number | null> {
    const { child } = server
    if (hasEnded(child)) return child.exitCode
    const exit = once(child, 'exit')
    child.kill(signal)
    await exit
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
    interrupt: (signal = 'SIGINT') => stop(signal),
    crash: async () => void (await stop('SIGKILL')),
    async start(changedSettings = {}, from) {
      Object.assign(env, changedSettings)
      server = launch(env, { from, descriptorLimit })
      await waitUntilReady(server, env)
    },
    down: () => run(atoll, ['down'], { env }),
    async [Symbol.asyncDispose]() {
      await stop('SIGTERM')
      await remove()
    },
  }
}

/** Returns settings that disturb no other installation on this machine. */
export function createEnvironment(
  dataDir: string,
  settings: Record<string, string>,
): NodeJS.ProcessEnv {
  return {
    ...process.env,
    ATOLL_DATA_DIR: dataDir,
    ATOLL_LAYERS_DIR: layersDir,
    ATOLL_SUBNET: createSubnet(),
    // No warm pool: most tests count the sandboxes that they created.
    ATOLL_POOL_MEMORY_MB: '0',
    ...settings,
  }
}

async function readCredentials(
  dataDir: string,
): Promise<Pick<Installation, 'apiKey' | 'accessToken' | 'teamId'>> {
  return JSON.parse(await readFile(join(dataDir, 'credentials.json'), 'utf8'))
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
  // Start Node.js directly: signals must reach the server itself, not a shell.
  const limit = descriptorLimit ? ['prlimit', `--nofile=${descriptorLimit}`] : []
  const command = [process.execPath, atollProgram(from), 'up']
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

async function waitUntilReady({ child, output }: Server, env: NodeJS.ProcessEnv): Promise<void> {
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
    // The first start of another release builds its template too, which takes a minute on a quiet machine.
    { timeoutMs: 1_200_000, intervalMs: 50 },
  )
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

/** Returns a network of 1,024 addresses from a range that the default does not use. */
function createSubnet(): string {
  const number = (process.pid * 7 + installations++) % 16_384
  const base = number * 1024
  return `10.${64 + (Math.floor(base / 65_536) % 128)}.${Math.floor(base / 256) % 256}.0/22`
}
