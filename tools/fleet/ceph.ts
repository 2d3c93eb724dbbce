/**
 * Starts a private Ceph with an S3 gateway for tests: Debian's packages, one monitor, one OSD that keeps objects in
 * memory, and one gateway. All end with this process. The cluster has no authentication: only loopback reaches it.
 */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '@atoll/kit/run'
import { freePort } from '@atoll/kit/testing/free-port'
import { waitFor } from '@atoll/kit/wait'
import { aptGet } from '@atoll/node/debian/apt'
import { createOwnedFolder } from './owner.ts'

export interface CephStore extends AsyncDisposable {
  readonly endpoint: string
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** The S3 gateway. Objects are elsewhere, so that it can be killed and started again. */
  readonly gateway: {
    kill(): Promise<void>
    start(): Promise<void>
  }
}

export interface CephOptions {
  /** Address of the gateway. Default: 127.0.0.1. */
  readonly host?: string
}

const programs = ['ceph-mon', 'ceph-osd', 'radosgw', 'ceph', 'monmaptool']
const packages = ['ceph-mon', 'ceph-osd', 'radosgw', 'ceph-common']
const uid = 'atoll'
const stepLimitMs = 120_000
/** Long enough for a machine whose load is 20 times its cores. */
const startLimitMs = 900_000
const requestLimitMs = 20_000
const logShown = 4_000

export async function startCeph({ host = '127.0.0.1' }: CephOptions = {}): Promise<CephStore> {
  await installCeph()
  await using started = new AsyncDisposableStack()
  const folder = await createOwnedFolder(join(tmpdir(), 'atoll-ceph-'))
  started.defer(() => rm(folder, { recursive: true, force: true }))
  const [monitorPort, port] = [await freePort(), await freePort()]
  const fsid = randomUUID()
  const conf = join(folder, 'ceph.conf')
  const endpoint = `${host}:${port}`
  await writeFile(conf, configuration({ folder, fsid, monitorPort, endpoint }))
  const call = (program: string, ...args: string[]) =>
    run(program, ['--conf', conf, ...args], { timeoutMs: stepLimitMs, cwd: folder })
  const launch = (name: string, program: string, ...args: string[]): Daemon => {
    const child = startDaemon(program, ['--conf', conf, '--foreground', ...args], folder)
    return { name, child, log: join(folder, `${name}.log`) }
  }
  const begin: Steps['begin'] = (...command) => {
    const daemon = launch(...command)
    started.defer(() => stop(daemon.child))
    return daemon
  }

  await startMonitor({ folder, fsid, monitorPort, call, begin })
  await startStorage({ folder, call, begin })
  const url = `http://${endpoint}`
  const gateway = controlGateway(url, () => launch('client.rgw', 'radosgw', '--name', 'client.rgw'))
  started.defer(() => gateway.kill())
  await gateway.start()
  const accessKeyId = randomBytes(10).toString('hex')
  const secretAccessKey = randomBytes(20).toString('hex')
  const keys = ['--access-key', accessKeyId, '--secret', secretAccessKey]
  await call('radosgw-admin', 'user', 'create', '--uid', uid, '--display-name', uid, ...keys)
  const owned = started.move()
  return {
    ...{ endpoint: url, region: 'us-east-1', accessKeyId, secretAccessKey, gateway },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

interface Steps {
  readonly folder: string
  readonly call: (program: string, ...args: string[]) => Promise<string>
  /** `name`: as in the name of the log file. */
  readonly begin: (name: string, program: string, ...args: string[]) => Daemon
}

interface Daemon {
  readonly name: string
  readonly child: ChildProcess
  readonly log: string
}

async function startMonitor(
  steps: Steps & { readonly fsid: string; readonly monitorPort: number },
): Promise<void> {
  const { folder, fsid, monitorPort, call, begin } = steps
  const map = join(folder, 'monmap')
  const address = `[v1:127.0.0.1:${monitorPort}]`
  await run('monmaptool', ['--create', '--fsid', fsid, '--addv', 'a', address, map])
  await call('ceph-mon', '--mkfs', '--id', 'a', '--monmap', map)
  const monitor = begin('mon.a', 'ceph-mon', '--id', 'a')
  await waitForDaemon(monitor, () =>
    call('ceph', '--connect-timeout', '10', 'mon', 'stat').then(
      () => true,
      () => false,
    ),
  )
}

async function startStorage({ folder, call, begin }: Steps): Promise<void> {
  const uuid = randomUUID()
  await mkdir(join(folder, 'osd'))
  await call('ceph', 'osd', 'new', uuid)
  await call('ceph-osd', '--mkfs', '--id', '0', '--osd-uuid', uuid)
  await call('ceph', 'osd', 'crush', 'add', 'osd.0', '1', 'root=default', 'host=localhost')
  const storage = begin('osd.0', 'ceph-osd', '--id', '0')
  await waitForDaemon(storage, async () => (await call('ceph', 'osd', 'stat')).includes('1 up'))
}

function controlGateway(url: string, launch: () => Daemon): CephStore['gateway'] {
  let current: Daemon | undefined
  const isServing = () =>
    fetch(url, { signal: AbortSignal.timeout(requestLimitMs) }).then(
      (reply) => reply.ok,
      () => false,
    )
  return {
    async kill() {
      if (current) await stop(current.child)
    },
    async start() {
      if (current && !hasEnded(current.child)) return
      current = launch()
      await waitForDaemon(current, isServing)
    },
  }
}

/** Throws with the end of the log of the daemon as soon as the daemon has ended. */
async function waitForDaemon(
  { name, child, log }: Daemon,
  isReady: () => Promise<boolean>,
): Promise<void> {
  const check = async () => {
    if (!hasEnded(child)) return isReady()
    const written = await readFile(log, 'utf8').catch(() => 'no log')
    const outcome = child.exitCode === null ? `by ${child.signalCode}` : `with ${child.exitCode}`
    throw new Error(`${name} of Ceph ended ${outcome}: ${written.slice(-logShown)}`)
  }
  await waitFor(`${name} of Ceph`, check, { timeoutMs: startLimitMs, intervalMs: 200 })
}

function configuration(parts: {
  readonly folder: string
  readonly fsid: string
  readonly monitorPort: number
  readonly endpoint: string
}): string {
  const { folder, fsid, monitorPort, endpoint } = parts
  const settings = {
    fsid,
    mon_host: `[v1:127.0.0.1:${monitorPort}]`,
    public_addr: '127.0.0.1',
    cluster_addr: '127.0.0.1',
    ms_bind_msgr2: false,
    ms_bind_ipv6: false,
    ...{ auth_cluster_required: 'none', auth_service_required: 'none' },
    auth_client_required: 'none',
    ...{ osd_pool_default_size: 1, osd_pool_default_min_size: 1, mon_allow_pool_size_one: true },
    ...{ osd_pool_default_pg_num: 1, osd_pool_default_pgp_num: 1 },
    osd_pool_default_pg_autoscale_mode: 'off',
    osd_crush_chooseleaf_type: 0,
    // Commands that an OSD sends at its start may come before it knows the map of the monitors. They are refused then
    // (`wrong fsid`), and the OSD ends.
    ...{ osd_crush_update_on_start: false, osd_class_update_on_start: false },
    mon_max_pg_per_osd: 1000,
    // The disk of this machine says nothing: only the maps of the cluster are on it.
    ...{ mon_data_avail_warn: 1, mon_data_avail_crit: 1 },
    osd_objectstore: 'memstore',
    memstore_device_bytes: 8 * 1024 ** 3,
    rgw_frontends: `beast endpoint=${endpoint}`,
    rgw_thread_pool_size: 32,
    ...{ mon_data: join(folder, 'mon'), osd_data: join(folder, 'osd') },
    ...{ rgw_data: folder, run_dir: folder, keyring: join(folder, 'keyring') },
    admin_socket: join(folder, '$name.asok'),
    log_file: join(folder, '$name.log'),
    mon_cluster_log_file: join(folder, 'cluster.log'),
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}\n`)
  return `[global]\n${lines.join('')}`
}

async function installCeph(): Promise<void> {
  const isInstalled = () => programs.every((name) => existsSync(`/usr/bin/${name}`))
  if (isInstalled()) return
  process.stderr.write('installing Ceph from Debian packages\n')
  // Stale package lists may still work; if not, the installation fails.
  await aptGet(['update'], () => {}).catch(() => {})
  await aptGet(['install', '--yes', '--no-install-recommends', ...packages], () => {})
  if (!isInstalled()) throw new Error(`Debian's packages lack one of ${programs.join(', ')}`)
}

function startDaemon(program: string, args: readonly string[], cwd: string): ChildProcess {
  const bound = ['--pdeathsig', 'KILL', program, ...args]
  return spawn('setpriv', bound, { cwd, stdio: 'ignore' })
}

/** Kills at once: nothing of the store is kept. */
async function stop(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}
