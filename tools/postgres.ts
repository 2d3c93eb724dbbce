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
import { promisify } from 'node:util'
import { run } from '@atoll/kit/run'
import { freePort } from '@atoll/kit/testing/free-port'
import { aptGet } from '@atoll/node/debian/apt'

export interface PostgresServer {
  /** URL of the superuser without a database: append `/name`. */
  readonly url: string
  close(): Promise<void>
}

export async function startPostgres(): Promise<PostgresServer> {
  const programs = await installPostgres()
  const folder = await mkdtemp(join(tmpdir(), 'atoll-postgres-'))
  try {
    const server = await startIn(folder, programs)
    const { port } = server
    return {
      url: `postgres://postgres@127.0.0.1:${port}`,
      async close() {
        await stop(server.child)
        await rm(folder, { recursive: true })
      },
    }
  } catch (error) {
    await rm(folder, { recursive: true })
    throw error
  }
}

/** Returns the folder of the PostgreSQL programs. */
async function installPostgres(): Promise<string> {
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

async function startIn(folder: string, programs: string) {
  const data = join(folder, 'data')
  const asOwner = await ownerOf(folder)
  const initdb = [join(programs, 'initdb'), '--pgdata', data, ...clusterOptions]
  await promisify(execFile)('setpriv', [...asOwner, ...initdb], { cwd: folder })
  for (let attempt = 1; ; attempt += 1) {
    // Retry: another program may take the port before the server does.
    const port = await freePort()
    const settings = { ...serverSettings, port: String(port) }
    const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const child = spawn(
      'setpriv',
      [...asOwner, join(programs, 'postgres'), '-D', data, ...options],
      {
        cwd: folder,
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    )
    const failure = await waitUntilReady(child)
    if (failure === undefined) return { child, port }
    if (attempt === attempts)
      throw new Error(`PostgreSQL did not start in ${attempts} attempts:\n${failure}`)
  }
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

/** PostgreSQL refuses to run as root. `--pdeathsig` stops it when this process ends. */
async function ownerOf(folder: string): Promise<string[]> {
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

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGINT')
  await once(child, 'exit')
}
