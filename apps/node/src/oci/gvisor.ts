import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { MountNamespace } from '../linux/mounts/mount-namespace.ts'
import { createScratch } from '../linux/disks/scratch.ts'
import { setTimerSlack } from '../linux/processes/timer-slack.ts'
import { writeBundle } from './bundle.ts'
import { createOciCommands } from './commands.ts'
import type { CommandOptions } from './commands.ts'
import { findOrphanedRequests } from './gvisor-orphaned-requests.ts'
import { disarmStaleInterests } from './gvisor-stale-interests.ts'
import { thawReliably } from './gvisor-thaw.ts'
import type { ProcessIdentity } from '../domain/sandboxes/process-identity.ts'
import type { Runtime, StartRequest } from '../domain/sandboxes/runtime.ts'

/**
 * Runs sandboxes with runsc: their kernel is a host process written in Go, and all access to the host's kernel goes
 * through it. Capabilities have an effect only inside that kernel, so root inside is root of the sandbox alone.
 */
export function createGvisor(parts: {
  readonly namespace: MountNamespace
  readonly stateDir: string
  readonly dataDir: string
  /** runsc: a path, or a name on the search path. */
  readonly program: string
  readonly release: Runtime['release']
  readonly memoryFormat: Runtime['memoryFormat']
  readonly cgroupParent: string
  /** Guest program; undefined when no sandbox will be started. */
  readonly guest: string | undefined
}): Runtime {
  const root = join(parts.stateDir, 'runsc')
  /** Cells known to be frozen. Other cells may be frozen too, by a killed command or a previous server. */
  const frozen = new Set<string>()
  const commands = createOciCommands({
    namespace: parts.namespace,
    program: parts.program,
    starter: parts.guest === undefined ? [] : [parts.guest, 'gvisor-start'],
    root,
    flags: [
      '--platform=systrap',
      '--network=sandbox',
      '--net-raw',
      // Open outside connections must not block a pause; they are closed.
      '--net-disconnect-ok',
      // Keep files on the host's disk: they survive the sandbox's kernel and can be measured and copied.
      '--overlay2=none',
    ],
    ownerOf,
  })
  const scratch = createScratch({
    namespace: parts.namespace,
    image: join(parts.dataDir, 'scratch.img'),
    dir: join(parts.stateDir, 'scratch'),
    sizeMb: 24,
  })
  /**
   * Raises the priority of gVisor's kernel above the programs inside, which wait for it. Without permission all is just
   * slower.
   */
  const lead = async (process: ProcessIdentity) => {
    if (parts.guest !== undefined) {
      await parts.namespace.tryRun(parts.guest, ['gvisor-lead', `${process.pid}`])
    }
    return process
  }
  const write = (request: StartRequest) =>
    writeBundle(request, {
      cgroupParent: parts.cgroupParent,
      capabilities,
      mounts: gvisorMounts(request),
      initArgs: ['--sudo'],
      linux: {},
      namespaces: [],
      pidsLimit: hostThreads,
    })

  return {
    name: 'gvisor',
    noticesKillsLate: true,
    idShift: 0,

    release: parts.release,
    memoryFormat: parts.memoryFormat,

    async start(request) {
      await write(request)
      return lead(await commands.run(request.cell.cellId, request.bundleDir))
    },

    async restore(request, memoryDir) {
      await write(request)
      return lead(await commands.restore(request.cell.cellId, request.bundleDir, memoryDir))
    },

    async freeze(cellId) {
      await commands.execute('pause', [cellId])
      frozen.add(cellId)
    },

    async thaw(cellId) {
      const findOut = () => thawReliably(commands, root, cellId)
      await (frozen.delete(cellId)
        ? commands.execute('resume', [cellId]).catch(findOut)
        : findOut())
    },

    async saveMemory(cellId, memoryDir, endHalfOpen) {
      const save = (dir: string, options?: CommandOptions) =>
        commands.execute('checkpoint', [...saving, '--image-path', dir, cellId], options)
      // gVisor closes outside connections while it saves, and depending on the order the saved epoll sets are wrong:
      // copies may spin forever. After a first attempt no such connections are left. The scratch disk makes the first
      // attempt fail as soon as all but the memory pages is written.
      const saveTwice = async () => {
        await scratch.use((dir) => save(dir).catch(() => {}))
        // runsc does not overwrite the files of a failed attempt.
        await rm(memoryDir, { recursive: true, force: true })
        await mkdir(memoryDir, { recursive: true, mode: 0o700 })
        await save(memoryDir, { timeoutMs: saveLimitMs })
      }
      const saveOnceOpen = (waitsMs: readonly number[]): Promise<void> =>
        saveTwice().catch(async (error: unknown) => {
          if (!isOpening(error)) throw deletedFile(error) ?? error
          const [waitMs, ...more] = waitsMs
          if (waitMs === undefined) throw connectionOpens(error)
          await sleep(waitMs)
          if (waitsMs !== openingWaitsMs) await endHalfOpen?.()
          return saveOnceOpen(more)
        })
      await saveOnceOpen(openingWaitsMs)
      // Restored programs would otherwise get events for descriptors that they closed before.
      await disarmStaleInterests(join(memoryDir, 'checkpoint.img'))
    },

    // envd sets the hostname: it belongs to gVisor's own kernel.
    setHostname: async () => {},

    setIdleLevel: (process, rest) => setTimerSlack(process, timerSlackNs[rest]),
    orphanedRequests: ({ pid }) => findOrphanedRequests(pid),

    async remove(cellId) {
      frozen.delete(cellId)
      await commands.removeState(cellId)
    },
    list: commands.list,
  }
}

/**
 * Tests for a gVisor bug: closing a half-open connection panics, because the reset needs a sender that does not exist
 * yet.
 */
function isOpening(error: unknown): boolean {
  return error instanceof Fault && /tcp\.\(\*Endpoint\)\.reset/.test(error.message)
}

function connectionOpens(cause: unknown): Fault {
  const message =
    'Memory cannot be kept while a program waits for a connection to be opened, such as to a server that does not answer'
  return new Fault('invalid', 'connection_opens', message, { cause })
}

/**
 * Waits between attempts. Most connections open within milliseconds; the others are ended before the later attempts.
 */
const openingWaitsMs: readonly number[] = [100, 10, 400, 1200]

/** Detects an open deleted file: a restore finds files by path, and a deleted file has none. */
function deletedFile(error: unknown): Fault | undefined {
  if (!(error instanceof Fault)) return undefined
  const path = /gofer\.dentry\("(.{0,200}?)"\)\.beforeSave: deleted/.exec(error.message)?.[1]
  if (path === undefined) return undefined
  const message = `Memory cannot be kept while a program holds a deleted file open: "/${path}"`
  return new Fault('invalid', 'deleted_file_open', message, { cause: error })
}

/**
 * Timer slack per idle level. gVisor's platform checks every 0.4 ms whether to spin for programs inside; slack makes
 * that rare. The kernel's default is 50 µs. Up to 5 ms commands take no longer than with the default; 50 ms adds about
 * 10 ms.
 */
const timerSlackNs = { awake: 50_000, drowsy: 5_000_000, asleep: 50_000_000 } as const

/** Allows time to write gigabytes to a busy disk. */
const saveLimitMs = 240_000

const saving = ['--leave-running', '--compression=none', '--exclude-committed-zero-pages']

/** Limit on host threads of one sandbox's kernel; each process inside takes a few. */
const hostThreads = 4096

/**
 * Finds the cell of a state file. runsc uses `<id>_sandbox:<id>.state`, `<id>_sandbox:<id>.lock` and `runsc-<id>.sock`.
 */
function ownerOf(entry: string): string {
  return /^(?:runsc-)?([a-z0-9]+)[_.]/.exec(entry)?.[1] ?? entry
}

function gvisorMounts({ hasSudo, envdDir }: StartRequest) {
  const system = {
    destination: '/sys',
    type: 'sysfs',
    source: 'sysfs',
    options: ['ro', 'nosuid', 'noexec', 'nodev'],
  }
  if (!hasSudo) return [system]
  // gVisor ignores setuid bits, so the guest program, served by PID 1, replaces sudo.
  const sudo = {
    destination: '/usr/bin/sudo',
    type: 'bind',
    source: join(envdDir, 'sudo'),
    options: ['bind', 'ro'],
  }
  return [system, sudo]
}

const capabilities = [
  'CAP_AUDIT_WRITE',
  'CAP_CHOWN',
  'CAP_DAC_OVERRIDE',
  'CAP_DAC_READ_SEARCH',
  'CAP_FOWNER',
  'CAP_FSETID',
  'CAP_IPC_LOCK',
  'CAP_IPC_OWNER',
  'CAP_KILL',
  'CAP_LEASE',
  'CAP_LINUX_IMMUTABLE',
  'CAP_MKNOD',
  'CAP_NET_ADMIN',
  'CAP_NET_BIND_SERVICE',
  'CAP_NET_BROADCAST',
  'CAP_NET_RAW',
  'CAP_SETFCAP',
  'CAP_SETGID',
  'CAP_SETPCAP',
  'CAP_SETUID',
  'CAP_SYS_ADMIN',
  'CAP_SYS_CHROOT',
  'CAP_SYS_NICE',
  'CAP_SYS_PTRACE',
  'CAP_SYS_RESOURCE',
  'CAP_SYS_TIME',
  'CAP_SYS_TTY_CONFIG',
]
