import { once } from 'node:events'
import type { Server } from 'node:http'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { systemClock } from '@atoll/kit/clock'
import type { Clock } from '@atoll/kit/clock'
import { createSpawnerProcess } from '@atoll/kit/spawner/process'
import { exposePorts } from './app/expose-ports.ts'
import type { ExposePorts } from './app/expose-ports.ts'
import { createLog } from './app/log.ts'
import type { SandboxLog } from './app/log.ts'
import { createMemoryCompaction } from './app/memory-compaction.ts'
import type { MemoryCompaction } from './app/memory-compaction.ts'
import { createMetrics } from './app/metrics.ts'
import { createProcesses } from './app/processes.ts'
import { openSandbox } from './app/sandbox.ts'
import type { Sandbox, SandboxDeps } from './app/sandbox.ts'
import { openCaTrust } from './app/ca-trust.ts'
import type { CaTrust } from './app/ca-trust.ts'
import { createWatchers } from './app/watchers.ts'
import type { Config } from './config.ts'
import { truncate } from './domain/sandbox/log.ts'
import { accountNames } from './fs/files/account-names.ts'
import { folderEntries } from './fs/files/entries.ts'
import { inotifyFolderWatcher } from './fs/watch/folder-watcher.ts'
import { fileMetadata } from './fs/metadata/file-metadata.ts'
import { regularFiles } from './fs/files/regular-files.ts'
import { settingsFile } from './fs/sandbox/settings-file.ts'
import { installedCaFile } from './fs/trust/installed-ca-file.ts'
import { caInstaller } from './fs/trust/install-ca.ts'
import { variableFiles } from './fs/sandbox/variable-files.ts'
import { logsPath } from './http/node/logs.ts'
import { createHttpServer } from './http/server.ts'
import { randomName } from './linux/kernel-random.ts'
import { compactMemory, heapBytes } from './linux/compact-memory.ts'
import { lazyLibc } from './linux/libc.ts'
import type { Libc } from './linux/libc.ts'
import { forwardPort, ownAddress } from './net/forward-port.ts'
import { passwdUsers } from './posix/user-accounts.ts'
import { createFifoPool } from './posix/fifo-pool.ts'
import type { FifoPool } from './posix/fifo-pool.ts'
import { listenerTable } from './posix/listeners.ts'
import { loadTerminalAddon } from './posix/pty-addon.ts'
import { posixSpawner } from './posix/spawner.ts'
import { procUsage, visibleCpuCount } from './posix/proc-usage.ts'
import { warmUp } from './warm-up.ts'
import { envdVersion } from './version.ts'

export interface EnvdOptions extends Config {
  /** Default: all addresses, because the edge connects to the sandbox's own address. */
  readonly host?: string
  /** Folder where the platform's variables are mirrored as files. Default: /run/e2b. */
  readonly variableFolder?: string
  /** Root of the system folders where the egress CA is installed. Default: /. */
  readonly trustRoot?: string
  readonly accounts?: { readonly passwd: string; readonly group: string }
  readonly clock?: Clock
  /** Monotonic clock. */
  readonly nowMs?: () => number
  /** Default: loaded on first use. */
  readonly libc?: () => Libc
  /** Sets the host name to the sandbox ID. Default: does nothing. */
  readonly setHostName?: (sandboxId: string, oldId: string | undefined) => Promise<void>
  /** Sets the system clock. Default: does nothing. */
  readonly stepClock?: (to: Date) => Promise<void>
  /** Folder for file metadata that cannot be stored in extended attributes. Default: /var/lib/atoll. */
  readonly metadataFolder?: string
  /** Skips extended attributes, to test file systems that lack them. */
  readonly withoutAttributes?: boolean
  /** Forwards servers that listen on loopback to the sandbox's own address. Default: false. */
  readonly exposePorts?: boolean
  /** Receives unexpected errors. The sandbox log gets them too. */
  readonly report?: (cause: unknown) => void
}

export interface Envd {
  readonly port: number
  /** Ends all streams, connections and processes. */
  close(): Promise<void>
}

/** Builds and starts all parts; `close` stops them in reverse order. Production and tests both call this. */
export async function startEnvd(options: EnvdOptions): Promise<Envd> {
  await using started = new AsyncDisposableStack()
  const { clock = systemClock, nowMs = () => performance.now(), path } = options
  const log = createLog({ clock, nowMs })
  const report = (cause: unknown) => {
    log.write('error', `Unexpected error: ${truncate(String(cause), 1024)}`, { logger: 'envd' })
    options.report?.(cause)
  }
  const folder = dirname(options.stateFile)
  const trust = openTrust(options, log)
  let exposedPorts: ExposePorts | undefined
  const sandbox = await openSettings(options, {
    clock,
    log,
    trust,
    updateForwards: async () => exposedPorts?.updateAddress(),
  })
  const { libc = lazyLibc(options.libcAddon) } = options
  const { fifos, spawner } = openSpawner(options, started)
  const processes = createProcesses({ spawner, path, nowMs, log })
  started.defer(() => processes.close())
  const files = openFiles(options, libc, started)
  const shutdown = new AbortController()
  const deps = {
    sandbox,
    trust,
    processes,
    ...files,
    initToken: options.initToken,
    log,
    clock,
    metrics: createMetrics({ usage: procUsage, visibleCpuCount, clock, nowMs }),
    report,
    shutdown: shutdown.signal,
  }
  const load = () => loadLazyParts(options, libc, fifos)
  const compaction = openCompaction({ libc, nowMs, report }, started)
  const server = createHttpServer({
    ...deps,
    prepare: () =>
      warmUp({ deps, spawner, path, nowMs, folder, load, compact: compaction.compactOnce }),
  })
  // Resumed before the first request: a file must not appear to have lost its metadata.
  await files.metadata.resume().catch(report)
  const port = await listen(server, options)
  warmAfterFirstResponse(server, fifos)
  compactWhenIdle(server, compaction)
  started.defer(() => closeServer(server, shutdown))
  if (options.exposePorts) {
    exposedPorts = exposeLoopbackPorts(server, report)
    started.adopt(exposedPorts, (exposed) => exposed.close())
  }
  const owned = started.move()
  return { port, close: () => owned.disposeAsync() }
}

function openTrust(options: EnvdOptions, log: SandboxLog): CaTrust {
  return openCaTrust({
    store: installedCaFile(join(dirname(options.stateFile), 'trust.json')),
    install: caInstaller(options.trustRoot),
    log,
  })
}

async function openSettings(
  options: EnvdOptions,
  deps: Pick<SandboxDeps, 'clock' | 'updateForwards'> & {
    readonly log: SandboxLog
    readonly trust: CaTrust
  },
): Promise<Sandbox> {
  const { clock, updateForwards, log, trust } = deps
  const sandbox = await openSandbox({
    store: settingsFile(options.stateFile),
    publish: variableFiles(options.variableFolder ?? '/run/e2b'),
    clock,
    setHostName: options.setHostName ?? (() => Promise.resolve()),
    updateForwards,
    stepClock: options.stepClock ?? (() => Promise.resolve()),
    trust: (caBundle) => trust.install(caBundle).catch(() => {}), // failures are in the sandbox log
    onSandboxIdChange() {
      // Earlier entries belong to the sandbox that this one was copied from, and are in its log.
      log.clear()
      log.write('info', 'Sandbox ready', { logger: 'envd', version: envdVersion })
    },
  })
  if (sandbox.settings()) log.write('warn', 'envd restarted', { logger: 'envd' })
  return sandbox
}

function openSpawner(options: EnvdOptions, started: AsyncDisposableStack) {
  const { guestProgram, terminalAddon, stateFile } = options
  const spawnerProcess = started.use(createSpawnerProcess([guestProgram, 'spawner'], { env: {} }))
  const folder = join(dirname(stateFile), 'fifos')
  const fifos = started.use(createFifoPool({ spawnerProcess, folder }))
  return { fifos, spawner: posixSpawner({ guestProgram, terminalAddon, fifos, spawnerProcess }) }
}

function openFiles(options: EnvdOptions, libc: () => Libc, started: AsyncDisposableStack) {
  const accounts = options.accounts ?? { passwd: '/etc/passwd', group: '/etc/group' }
  const metadata = fileMetadata({
    libc,
    folder: options.metadataFolder ?? '/var/lib/atoll',
    bootIdFile: join(dirname(options.stateFile), 'life'),
    withoutAttributes: options.withoutAttributes,
  })
  started.defer(() => metadata.close())
  const watchers = createWatchers(inotifyFolderWatcher(libc), randomName)
  started.defer(() => watchers.close())
  return {
    users: passwdUsers(accounts),
    files: regularFiles,
    entries: folderEntries({ names: accountNames(accounts), metadata }),
    metadata,
    watchers,
  }
}

async function listen(server: Server, options: EnvdOptions): Promise<number> {
  server.listen(options.port, options.host ?? '0.0.0.0')
  await once(server, 'listening')
  const address = server.address()
  return typeof address === 'object' && address ? address.port : options.port
}

/** Starting a process takes as long as the rest of the startup, so the pipes are created after the first response. */
function warmAfterFirstResponse(server: Server, fifos: FifoPool): void {
  const warm = () => void fifos.warm().catch(() => {}) // the next process start retries and reports the error
  server.once('request', (_request, response) => response.once('close', warm))
}

async function loadLazyParts(options: EnvdOptions, libc: () => Libc, fifos: FifoPool) {
  libc()
  loadTerminalAddon(options.terminalAddon)
  // The first write to a template file copies it up, which waits for the disk.
  await options.setHostName?.(hostname(), undefined)
  await fifos.warm()
}

function openCompaction(
  deps: {
    readonly libc: () => Libc
    readonly nowMs: () => number
    readonly report: (cause: unknown) => void
  },
  started: AsyncDisposableStack,
): MemoryCompaction {
  const { libc, nowMs, report } = deps
  const compaction = createMemoryCompaction({
    compact: () => compactMemory(libc()),
    memoryBytes: heapBytes,
    processorMs: ownProcessorMs,
    nowMs,
    report,
  })
  started.defer(() => compaction.close())
  return compaction
}

function ownProcessorMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** Requests of the node that fetch logs do not count: they come all the time, also while the sandbox is idle. */
function compactWhenIdle(server: Server, compaction: MemoryCompaction): void {
  server.on('request', ({ url }, response) => {
    if (!isLogRequest(url)) response.once('close', compaction.requestStarted())
  })
}

async function closeServer(server: Server, shutdown: AbortController): Promise<void> {
  const { Code, ConnectError } = await import('@connectrpc/connect')
  const text = 'envd is shutting down. Retry when the sandbox runs again.'
  shutdown.abort(new ConnectError(text, Code.Unavailable))
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
}

function exposeLoopbackPorts(server: Server, report: (cause: unknown) => void): ExposePorts {
  const exposed = exposePorts({
    listeners: listenerTable(),
    address: ownAddress,
    forward: forwardPort,
    nowMs: () => performance.now(),
    report,
  })
  // The node polls /logs all the time, so these requests say nothing about activity in the sandbox.
  server.on('request', ({ url }) => isLogRequest(url) || exposed.nudge())
  return exposed
}

function isLogRequest(url: string | undefined): boolean {
  return url?.startsWith(`${logsPath}?`) === true
}
