import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import type { RunOptions } from '@atoll/kit/run'
import type { ProcessIdentity } from '../domain/sandbox.ts'
import { identify } from '../linux/process.ts'
import type { MountNamespace } from '../linux/mount-namespace.ts'

/**
 * The command line that runsc and runc have in common. Ending a sandbox is not on it: `runsc delete` polls for a
 * second or more, while killing what is in the control group and forgetting the runtime's state takes milliseconds.
 */
export interface OciCommands {
  run(cellId: string, bundleDir: string): Promise<ProcessIdentity>
  /** Goes on from what a checkpoint wrote into `memoryDir`. */
  restore(cellId: string, bundleDir: string, memoryDir: string): Promise<ProcessIdentity>
  /** Any other command, with what the program says when it fails. */
  tell(command: string, args: readonly string[], options?: CommandOptions): Promise<void>
  /** Like `tell`, with what the program answers. */
  ask(command: string, args: readonly string[]): Promise<string>
  /** Forgets what the runtime has noted of a sandbox whose processes are gone. */
  forget(cellId: string): Promise<void>
  list(): Promise<string[]>
}

/** For commands that may take longer than most. */
export type CommandOptions = Pick<RunOptions, 'timeoutMs'>

export function createOciCommands(parts: {
  readonly namespace: MountNamespace
  readonly program: string
  /** Words before the program where it starts a sandbox. */
  readonly starter?: readonly string[]
  readonly root: string
  readonly flags: readonly string[]
  /** Which sandbox a file or folder of the runtime's state belongs to. */
  readonly ownerOf: (entry: string) => string
}): OciCommands {
  const { namespace, program, starter = [], root, ownerOf } = parts
  // Where it lies on the host is nothing for those who read of a failure.
  const name = basename(program)
  const entries = () => readdir(root).catch(() => [])

  async function start(
    command: string,
    cellId: string,
    bundleDir: string,
    options: readonly string[],
  ): Promise<ProcessIdentity> {
    await mkdir(root, { recursive: true, mode: 0o700 })
    const log = join(bundleDir, 'runtime.log')
    const pidFile = join(bundleDir, 'pid')
    const flags = [`--root=${root}`, `--log=${log}`, '--log-format=json', ...parts.flags]
    const places = ['--detach', '--pid-file', pidFile, '--bundle', bundleDir]
    const args = [...flags, command, ...places, ...options, cellId]
    // The sandbox inherits these three: it must not hold a pipe or a file of the host that it could fill.
    const [first = program, ...words] = [...starter, program, ...args]
    const result = await namespace.tryRun(first, words, { stdio: 'ignore' })
    const pid = Number(await readFile(pidFile, 'utf8').catch(() => '0'))
    const process = result.code === 0 && pid > 0 ? identify(pid) : undefined
    if (process) return process
    const said = await readFile(log, 'utf8').catch(() => '')
    const cause = new Error(`${name} ${command}: exit ${result.code}: ${said.slice(-2000)}`)
    throw new Fault('internal', 'runtime_failed', `${name} could not start the sandbox`, {
      cause,
    })
  }

  async function ask(
    command: string,
    args: readonly string[],
    options?: CommandOptions,
  ): Promise<string> {
    const words = [`--root=${root}`, ...parts.flags, command, ...args]
    const result = await namespace.tryRun(program, words, options)
    if (result.code === 0) return result.stdout
    if (result.code === null) {
      const message = `${program} ${command} did not finish in time, and was ended by ${result.signal}`
      throw new Fault('internal', 'runtime_failed', message)
    }
    // A failed checkpoint tells the whole state of the object it stumbled over: its beginning says what it is.
    const said = result.stderr.trim().slice(0, 600)
    throw new Fault('internal', 'runtime_failed', `${name} ${command} failed: ${said}`)
  }

  return {
    ask: (command, args) => ask(command, args),

    run: (cellId, bundleDir) => start('run', cellId, bundleDir, []),

    restore: (cellId, bundleDir, memoryDir) =>
      start('restore', cellId, bundleDir, ['--image-path', memoryDir]),

    tell: async (command, args, options) => void (await ask(command, args, options)),

    async forget(cellId) {
      const own = (await entries()).filter((entry) => ownerOf(entry) === cellId)
      await Promise.all(own.map((entry) => rm(join(root, entry), { recursive: true, force: true })))
    },

    async list() {
      return [...new Set((await entries()).map(ownerOf))]
    },
  }
}
