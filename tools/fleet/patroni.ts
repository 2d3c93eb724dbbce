/**
 * Starts three PostgreSQL servers under Patroni for tests, with Debian's packages. The three Patronis agree among themselves (Raft), so
 * no other service is needed. Replication is synchronous: a failover loses no commit. Durability on the disk is off, for speed.
 */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '@atoll/kit/run'
import { freePort } from '@atoll/kit/testing/free-port'
import { waitFor } from '@atoll/kit/wait'
import { aptGet } from '@atoll/node/debian/apt'
import { installPostgres, runAsOwner } from '../postgres.ts'
import type { PostgresServer } from '../postgres.ts'

interface Member {
  readonly name: string
  readonly folder: string
  /** Ports of PostgreSQL, of Patroni's interface and of Raft. */
  readonly port: number
  readonly restPort: number
  readonly raftPort: number
  child: ChildProcess | undefined
}

const memberCount = 3
const program = '/usr/bin/patroni'
const raftModule = '/usr/lib/python3/dist-packages/pysyncobj'
const packages = ['patroni', 'python3-pysyncobj']
const stepLimitMs = 600_000
const requestLimitMs = 10_000
const logShown = 4_000

/** `stop` kills the current leader, PostgreSQL and Patroni, and `restart` replaces it by an empty standby. */
export async function startPatroni(): Promise<PostgresServer> {
  const programs = await installPostgres()
  await installPatroni()
  await using started = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'atoll-patroni-'))
  started.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }))
  const asOwner = await runAsOwner(folder)
  const members: Member[] = []
  for (let index = 1; index <= memberCount; index += 1)
    members.push(await createMember(folder, `pg-${index}`))
  const launch = async (member: Member) => {
    const conf = join(folder, `${member.name}.yml`)
    // YAML contains JSON.
    await writeFile(conf, JSON.stringify(configurationOf(member, { members, programs })))
    member.child = spawn('setpriv', [...asOwner, program, conf], {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    keepLog(member)
  }
  started.defer(async () => void (await Promise.all(members.map(kill))))
  await run('chown', ['--recursive', '--reference', folder, folder])
  for (const member of members) await launch(member)
  await waitUntilComplete(members)
  const owned = started.move()
  return {
    url: `postgres://postgres@${members.map(({ port }) => loopback(port)).join(',')}`,
    async stop() {
      await kill(await waitForLeader(members))
    },
    async restart() {
      for (const member of members.filter((one) => !isRunning(one))) {
        // As if the machine was replaced. What the old leader wrote last may be in no other server.
        await rm(dataOf(member), { recursive: true, force: true, maxRetries: 10 })
        await launch(member)
      }
      await waitUntilComplete(members)
    },
    close: () => owned.disposeAsync(),
  }
}

async function createMember(parent: string, name: string): Promise<Member> {
  const folder = join(parent, name)
  await mkdir(folder, { mode: 0o700 })
  const [port, restPort, raftPort] = [await freePort(), await freePort(), await freePort()]
  return { name, folder, port, restPort, raftPort, child: undefined }
}

function loopback(port: number): string {
  return `127.0.0.1:${port}`
}

function configurationOf(
  member: Member,
  { members, programs }: { readonly members: readonly Member[]; readonly programs: string },
) {
  const { name, folder, port, restPort, raftPort } = member
  const others = members.filter((one) => one !== member)
  const login = (username: string) => ({ username, password: 'unused' })
  const rest = { listen: loopback(restPort), connect_address: loopback(restPort) }
  const raft = {
    data_dir: folder,
    self_addr: loopback(raftPort),
    partner_addrs: others.map((other) => loopback(other.raftPort)),
  }
  const bootstrap = {
    dcs: { ttl: 30, loop_wait: 5, retry_timeout: 10, synchronous_mode: true },
    initdb: [{ encoding: 'UTF8' }, { locale: 'C.UTF-8' }],
  }
  const postgresql = {
    ...{ listen: loopback(port), connect_address: loopback(port) },
    ...{ data_dir: dataOf(member), bin_dir: programs, pgpass: join(folder, 'pgpass') },
    authentication: { superuser: login('postgres'), replication: login('replicator') },
    pg_hba: ['host all all 127.0.0.1/32 trust', 'host replication all 127.0.0.1/32 trust'],
    parameters: { unix_socket_directories: folder, fsync: 'off', full_page_writes: 'off' },
    basebackup: [{ checkpoint: 'fast' }],
  }
  const watchdog = { mode: 'off' }
  return { scope: 'atoll', name, restapi: rest, raft, bootstrap, postgresql, watchdog }
}

function dataOf({ folder }: Member): string {
  return join(folder, 'data')
}

const logs = new WeakMap<Member, string>()

function keepLog(member: Member): void {
  member.child?.stderr?.setEncoding('utf8').on('data', (text: string) => {
    logs.set(member, `${logs.get(member) ?? ''}${text}`.slice(-logShown))
  })
}

function isRunning(member: Member): member is Member & { child: ChildProcess } {
  const { child } = member
  return child !== undefined && child.exitCode === null && child.signalCode === null
}

/** Patroni first: it would start PostgreSQL again. */
async function kill(member: Member): Promise<void> {
  if (isRunning(member)) {
    const exit = once(member.child, 'exit')
    member.child.kill('SIGKILL')
    await exit
  }
  const pidFile = join(dataOf(member), 'postmaster.pid')
  const pid = Number((await readFile(pidFile, 'utf8').catch(() => '')).split('\n')[0])
  if (!(pid > 1) || !(await belongsTo(pid, member))) return
  process.kill(pid, 'SIGKILL')
  await waitFor(`PostgreSQL of ${member.name} to end`, async () => !(await belongsTo(pid, member)))
}

/** Whether the process runs PostgreSQL on the data of this member: the ID may have been given to another process. */
async function belongsTo(pid: number, member: Member): Promise<boolean> {
  const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
  return command.split('\0').some((word) => word.includes(dataOf(member)))
}

/** Answer of Patroni about its server: https://patroni.readthedocs.io/en/latest/rest_api.html */
interface Status {
  readonly state: string
  readonly role: string
  readonly replication?: ReadonlyArray<{ readonly state: string; readonly sync_state: string }>
}

async function ask({ restPort }: Member, path: string): Promise<Status | undefined> {
  try {
    const signal = AbortSignal.timeout(requestLimitMs)
    const reply = await fetch(`http://${loopback(restPort)}${path}`, { signal })
    const status: Status | undefined = reply.ok ? JSON.parse(await reply.text()) : undefined
    return status
  } catch {
    return undefined
  }
}

/** Waits until a member holds the lock of the leader and takes writes. */
function waitForLeader(members: readonly Member[]): Promise<Member> {
  return waitForMembers('a leader', members, async () => {
    for (const member of members) if (await ask(member, '/primary')) return member
    return undefined
  })
}

/** Waits until all standbys replicate, one of them synchronously: then a failover loses nothing. */
async function waitUntilComplete(members: readonly Member[]): Promise<void> {
  await waitForMembers('all members', members, async () => {
    const answers = await Promise.all(members.map((member) => ask(member, '/primary')))
    const leader = answers.find((answer) => answer !== undefined)
    const standbys = leader?.replication?.filter(({ state }) => state === 'streaming') ?? []
    return (
      standbys.length === members.length - 1 &&
      standbys.some(({ sync_state }) => sync_state === 'sync')
    )
  })
}

async function waitForMembers<T>(
  what: string,
  members: readonly Member[],
  probe: () => Promise<T | undefined | false>,
): Promise<T> {
  const limits = { timeoutMs: stepLimitMs, intervalMs: 500 }
  return waitFor(`${what} of Patroni`, probe, limits).catch((error: unknown) => {
    const written = members.map((member) => `${member.name}: ${logs.get(member) ?? ''}`)
    throw new Error(`${String(error)}\n${written.join('\n')}`, { cause: error })
  })
}

async function installPatroni(): Promise<void> {
  const isInstalled = () => [program, raftModule].every((path) => existsSync(path))
  if (isInstalled()) return
  process.stderr.write('installing Patroni from Debian packages\n')
  // Stale package lists may still work; if not, the installation fails.
  await aptGet(['update'], () => {}).catch(() => {})
  await aptGet(['install', '--yes', '--no-install-recommends', ...packages], () => {})
  if (!isInstalled()) throw new Error(`Debian's packages lack ${program} or ${raftModule}`)
}
