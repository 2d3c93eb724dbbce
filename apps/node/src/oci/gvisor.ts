import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { ProcessIdentity, Runtime, StartRequest } from '../domain/sandbox.ts'
import type { MountNamespace } from '../linux/mount-namespace.ts'
import { createScratch } from '../linux/scratch.ts'
import { setTimerSlack } from '../linux/timer-slack.ts'
import { writeBundle } from './bundle.ts'
import { createOciCommands } from './commands.ts'
import type { CommandOptions } from './commands.ts'
import { lostAnswers } from './gvisor-lost-answers.ts'
import { disarmStaleInterests } from './gvisor-stale-interests.ts'
import { goOnAnyway } from './gvisor-standstill.ts'

/**
 * Sandboxes by runsc: their kernel is a process of ours, in Go, and the host's kernel is reached only through it.
 * Capabilities mean something inside that kernel alone, so root inside is root of all it can see.
 */
export function createGvisor(parts: {
  readonly namespace: MountNamespace
  readonly stateDir: string
  readonly dataDir: string
  /** runsc: a path, or a name to look for on the search path. */
  readonly program: string
  readonly release: Runtime['release']
  readonly memoryFormat: Runtime['memoryFormat']
  readonly cgroupParent: string
  /** The guest program; absent where no sandbox will be started. */
  readonly guest: string | undefined
}): Runtime {
  const root = join(parts.stateDir, 'runsc')
  /** Those that we know to stand still: any other may be so too, by a command that was killed, or of a predecessor. */
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
      // A connection to the outside does not keep a sandbox from being paused; it ends then.
      '--net-disconnect-ok',
      // The disk stays on the host, where it survives the sandbox's kernel and can be measured and copied.
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
  /** Programs inside wait for gVisor's kernel more than it for them. Where that is not permitted all is only slower. */
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
    noticesLate: true,
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
      await commands.tell('pause', [cellId])
      frozen.add(cellId)
    },

    async thaw(cellId) {
      const findOut = () => goOnAnyway(commands, root, cellId)
      await (frozen.delete(cellId) ? commands.tell('resume', [cellId]).catch(findOut) : findOut())
    },

    async saveMemory(cellId, memoryDir, endHalfOpen) {
      const save = (dir: string, options?: CommandOptions) =>
        commands.tell('checkpoint', [...saving, '--image-path', dir, cellId], options)
      // gVisor ends connections to the outside while it writes, and what it writes of their epoll sets then depends on
      // the order: copies may spin for ever. After a first attempt there are none left. It is to fail as soon as all
      // but the pages of memory is written.
      const saveTwice = async () => {
        await scratch.use((dir) => save(dir).catch(() => {}))
        // It does not write over what an attempt has left.
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
      // Else programs that go on from it hear of descriptors that they closed before.
      await disarmStaleInterests(join(memoryDir, 'checkpoint.img'))
    },

    // Its envd does it: the name is one of gVisor's own kernel.
    setHostname: async () => {},

    rest: (process, rest) => setTimerSlack(process, timerSlackNs[rest]),
    lostAnswers: ({ pid }) => lostAnswers(pid),

    async remove(cellId) {
      frozen.delete(cellId)
      await commands.forget(cellId)
    },
    list: commands.list,
  }
}

/** gVisor fails to end a connection that is neither open nor closed yet: it sends a reset from a sender that is not there. */
function isOpening(error: unknown): boolean {
  return error instanceof Fault && /tcp\.\(\*Endpoint\)\.reset/.test(error.message)
}

function connectionOpens(cause: unknown): Fault {
  const message =
    'Memory cannot be kept while a program waits for a connection to be opened, such as to a server that does not answer'
  return new Fault('invalid', 'connection_opens', message, { cause })
}

/** Most open within milliseconds. The others are ended before the next attempts. */
const openingWaitsMs: readonly number[] = [100, 10, 400, 1200]

/** gVisor knows a file on the disk by its path when it comes back: one that has none any more cannot be found again. */
function deletedFile(error: unknown): Fault | undefined {
  if (!(error instanceof Fault)) return undefined
  const path = /gofer\.dentry\("(.{0,200}?)"\)\.beforeSave: deleted/.exec(error.message)?.[1]
  if (path === undefined) return undefined
  const message = `Memory cannot be kept while a program holds a deleted file open: "/${path}"`
  return new Fault('invalid', 'deleted_file_open', message, { cause: error })
}

/**
 * Its platform looks every 0.4 ms whether to spin for programs inside, and it does so all the time. Slack makes that
 * seldom. The kernel's own is 50 µs; up to 5 ms a command takes no longer than with that, with 50 ms some 10 ms longer.
 */
const timerSlackNs = { awake: 50_000, drowsy: 5_000_000, asleep: 50_000_000 } as const

/** Gigabytes may have to be written, by a disk that others use too. */
const saveLimitMs = 240_000

const saving = ['--leave-running', '--compression=none', '--exclude-committed-zero-pages']

/** Threads of the host that one sandbox's kernel may use; each process inside takes a few. */
const hostThreads = 4096

/** runsc names its files `<id>_sandbox:<id>.state` and `.lock`, and its socket `runsc-<id>.sock`. */
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
  // Setuid bits mean nothing to gVisor: our own program, served by the first process, stands in for sudo.
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
