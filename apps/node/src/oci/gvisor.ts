import { join } from 'node:path'
import type { MountNamespace } from '../linux/mounts/mount-namespace.ts'
import { shareOwnPriority } from '../linux/processes/priority.ts'
import { setTimerSlack } from '../linux/processes/timer-slack.ts'
import { createOciCommands } from './commands.ts'
import { findOrphanedRequests } from './gvisor-orphaned-requests.ts'
import { createGvisorBlanks } from './gvisor-blanks.ts'
import { writeGvisorBundle } from './gvisor-bundle.ts'
import { createCommandControl, createSocketControl } from './gvisor-control.ts'
import { createSaveMemory } from './gvisor-save-memory.ts'
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
  /** runsc: a path, or a name on the search path. */
  readonly program: string
  readonly release: Runtime['release']
  readonly memoryFormat: Runtime['memoryFormat']
  readonly cgroupParent: string
  /** Guest program; undefined when no sandbox will be started. */
  readonly guest: string | undefined
}): Runtime {
  const root = join(parts.stateDir, 'runsc')
  /** Cells known to be frozen. Other cells may be frozen too, by a call without an answer or a previous server. */
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
  const bySocket = createSocketControl(root)
  const byCommand = createCommandControl(commands, root)
  const isTested = async () => (await parts.release()).includes(testedRelease)
  const control = async () => ((await isTested()) ? bySocket : byCommand)
  /** Raises the priority of gVisor's kernel above the programs inside, which wait for it. */
  const prioritize = (process: ProcessIdentity) => {
    shareOwnPriority(process)
    return process
  }
  const write = (request: StartRequest) => writeGvisorBundle(request, parts.cgroupParent)

  const { guest, namespace } = parts
  const blanks =
    guest === undefined
      ? undefined
      : createGvisorBlanks({
          ...{ namespace, commands, control: bySocket, root, guest },
          isSupported: isTested,
          writeBundle: write,
        })

  return {
    name: 'gvisor',
    noticesKillsLate: true,
    idShift: 0,

    release: parts.release,
    memoryFormat: parts.memoryFormat,

    async start(request) {
      await write(request)
      return prioritize(await commands.run(request.cell.cellId, request.bundleDir))
    },

    async restore(request, memoryDir) {
      await write(request)
      return prioritize(await commands.restore(request.cell.cellId, request.bundleDir, memoryDir))
    },

    ...(blanks && {
      blanks: {
        ...blanks,
        restore: async (request: StartRequest, memoryDir: string) =>
          prioritize(await blanks.restore(request, memoryDir)),
      },
    }),

    async freeze(cellId) {
      await (await control()).freeze(cellId)
      frozen.add(cellId)
    },

    async thaw(cellId) {
      const { thaw } = await control()
      const findOut = () => thawReliably(commands, { thaw }, cellId)
      await (frozen.delete(cellId) ? thaw(cellId).catch(findOut) : findOut())
    },

    saveMemory: createSaveMemory(control),

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

/** Release whose control socket and state files are known. */
const testedRelease = '20240729'

/**
 * Timer slack per idle level. gVisor's platform checks every 0.4 ms whether to spin for programs inside; slack makes
 * that rare. The kernel's default is 50 µs. Up to 5 ms commands take no longer than with the default; 50 ms adds about
 * 10 ms.
 */
const timerSlackNs = { awake: 50_000, drowsy: 5_000_000, asleep: 50_000_000 } as const

/**
 * Finds the cell of a state file. runsc uses `<id>_sandbox:<id>.state`, `<id>_sandbox:<id>.lock` and `runsc-<id>.sock`.
 */
function ownerOf(entry: string): string {
  return /^(?:runsc-)?([a-z0-9]+)[_.]/.exec(entry)?.[1] ?? entry
}
