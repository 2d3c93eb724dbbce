/**
 * Starts a private PostgreSQL server for tests and benchmarks: Debian's package, a new data folder and a free port. It
 * stops with the process that started it. Durability is off, for speed.
 */
import { execFile, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { run } from '@atoll/kit/run'
import { freePort } from '@atoll/kit/testing/free-port'
import { aptGet } from '@atoll/node/debian/apt'

export interface PostgresServer {
  /** URL of the superuser without a database: append `/name`. */
  readonly url: string
  /** Ends the server: SIGINT in order, SIGKILL like a crash. */
  stop(signal: 'SIGINT' | 'SIGKILL'): Promise<void>
  /** Starts the server again after `stop`, with its data and its port. */
  restart(): Promise<void>
  close(): Promise<void>
}

/** `settings` replace those of the server, by name. `parent` holds its data folder. */
export async function startPostgres(
  settings: Readonly<Record<string, string>> = {},
  parent: string = tmpdir(),
): Promise<PostgresServer> {
  const programs = await installPostgres()
  const folder = await mkdtemp(join(parent, 'atoll-postgres-'))
  try {
    const server = await startIn(folder, programs, settings)
    return {
      url: `postgres://postgres@127.0.0.1:${server.port}`,
      stop: (signal) => stop(server.child, signal),
      async restart() {
        await stop(server.child, 'SIGINT')
        server.child = await launchUntilReady(server.launch)
      },
      async close() {
        await stop(server.child, 'SIGINT')
        await rm(folder, { recursive: true })
      },
    }
  } catch (error) {
    await rm(folder, { recursive: true })
    throw error
  }
}

/** Returns the folder of the PostgreSQL programs. */
export async function installPostgres(): Promise<string> {
  const found = findPrograms()
  if (found !== undefined) return found
  process.stdout.write('installing PostgreSQL from Debian packages\n')
  // Keeps the package from starting a server of its own.
  const settings = '/etc/postgresql-common/createcluster.d'
  await mkdir(settings, { recursive: true })
  await writeFile(join(settings, 'atoll.conf'), 'create_main_cluster = false\n')
  // Stale package lists may still work; if not, the installation fails.
  await aptGet(['update'], () => {}).catch(() => {})
  await aptGet(['install', '--yes', '--no-install-recommends', 'postgresql'], () => {})
  const installed = findPrograms()
  if (installed === undefined)
    throw new Error('The package postgresql was installed, but /usr/lib/postgresql has no server')
  return installed
}

function findPrograms(): string | undefined {
  const version = (path: string) => Number(path.split('/')[4])
  return globSync('/usr/lib/postgresql/*/bin').toSorted((a, b) => version(b) - version(a))[0]
}

const attempts = 5
const restartAttempts = 60
const restartPauseMs = 500

async function startIn(folder: string, programs: string, given: Readonly<Record<string, string>>) {
  const data = join(folder, 'data')
  const asOwner = await runAsOwner(folder)
  const initdb = [join(programs, 'initdb'), '--pgdata', data, ...clusterOptions]
  await promisify(execFile)('setpriv', [...asOwner, ...initdb], { cwd: folder })
  const launch = (port: number): ChildProcess => {
    const settings = { ...serverSettings, ...given, port: String(port) }
    const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const command = [...asOwner, join(programs, 'postgres'), '-D', data, ...options]
    return spawn('setpriv', command, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
  }
  for (let attempt = 1; ; attempt += 1) {
    // Retry: another program may take the port before the server does.
    const port = await freePort()
    const child = launch(port)
    const failure = await waitUntilReady(child)
    if (failure === undefined) return { child, port, launch: () => launch(port) }
    if (attempt === attempts)
      throw new Error(`PostgreSQL did not start in ${attempts} attempts:\n${failure}`)
  }
}

/** After a crash, the processes of connections end later, and until then a new server refuses to start. */
async function launchUntilReady(launch: () => ChildProcess): Promise<ChildProcess> {
  let failure: string | undefined
  for (let attempt = 1; attempt <= restartAttempts; attempt += 1) {
    const child = launch()
    failure = await waitUntilReady(child)
    if (failure === undefined) return child
    await sleep(restartPauseMs)
  }
  throw new Error(`PostgreSQL did not start again in ${restartAttempts} attempts:\n${failure}`)
}

const clusterOptions = [
  '--auth=trust',
  '--username=postgres',
  '--encoding=UTF8',
  '--locale=C.UTF-8',
  '--no-sync',
]

const serverSettings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '300',
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
}

/**
 * Gives the folder to the user of PostgreSQL, which refuses to run as root. Returns options of `setpriv` that run a program as this
 * user, and end it with this process.
 */
export async function runAsOwner(folder: string): Promise<string[]> {
  const withParent = ['--pdeathsig', 'INT']
  if (process.getuid?.() !== 0) return withParent
  const [uid, gid] = [await run('id', ['-u', 'postgres']), await run('id', ['-g', 'postgres'])]
  await chown(folder, Number(uid), Number(gid))
  return ['--reuid', uid.trim(), '--regid', gid.trim(), '--clear-groups', ...withParent]
}

/** Returns the output if the server exits before it is ready. Keeps reading, or a full pipe would block the server. */
function waitUntilReady(child: ChildProcess): Promise<string | undefined> {
  const { stderr } = child
  if (!stderr) throw new Error('stderr of PostgreSQL is not a pipe')
  const lines: string[] = []
  return new Promise((resolve) => {
    const output = createInterface({ input: stderr })
    output.on('line', (line) => {
      if (line.includes('ready to accept connections')) resolve(undefined)
      else if (lines.length < 100) lines.push(line)
    })
    output.on('close', () => resolve(lines.join('\n')))
  })
}

async function stop(child: ChildProcess, signal: 'SIGINT' | 'SIGKILL'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill(signal)
  await once(child, 'exit')
}
