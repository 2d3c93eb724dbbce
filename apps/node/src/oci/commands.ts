import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import type { RunOptions } from '@atoll/kit/run'
import { identify } from '../linux/processes/process.ts'
import type { MountNamespace } from '../linux/mounts/mount-namespace.ts'
import type { ProcessIdentity } from '../domain/sandboxes/process-identity.ts'

/**
 * Commands that runsc and runc share. `delete` is left out: `runsc delete` polls for a second or more, while killing
 * the control group and removing the state files takes milliseconds.
 */
export interface OciCommands {
  run(cellId: string, bundleDir: string): Promise<ProcessIdentity>
  /** Makes a container without starting its first program. */
  create(cellId: string, bundleDir: string): Promise<ProcessIdentity>
  /** Restores from a checkpoint in `memoryDir`. */
  restore(cellId: string, bundleDir: string, memoryDir: string): Promise<ProcessIdentity>
  /** Runs any other command. Throws a fault with the program's error output. */
  execute(command: string, args: readonly string[], options?: CommandOptions): Promise<void>
  /** Runs a command like `execute` and returns its output. */
  query(command: string, args: readonly string[]): Promise<string>
  /** Removes the runtime's state files of a sandbox whose processes are gone. */
  removeState(cellId: string): Promise<void>
  list(): Promise<string[]>
}

/** Options for slow commands. */
export type CommandOptions = Pick<RunOptions, 'timeoutMs'>

export function createOciCommands(parts: {
  readonly namespace: MountNamespace
  readonly program: string
  /** Command prefix for starting a sandbox. */
  readonly starter?: readonly string[]
  readonly root: string
  readonly flags: readonly string[]
  /** Returns the cell that a file or folder in the runtime's state belongs to. */
  readonly ownerOf: (entry: string) => string
}): OciCommands {
  const { namespace, program, starter = [], root, ownerOf } = parts
  // Error messages must not show the path on the host.
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
    const places = ['--pid-file', pidFile, '--bundle', bundleDir]
    const args = [...flags, command, ...options, ...places, cellId]
    // The sandbox inherits stdio: it must not hold a pipe or a host file that it could fill.
    const [first = program, ...words] = [...starter, program, ...args]
    const result = await namespace.tryRun(first, words, { stdio: 'ignore' })
    const pid = Number(await readFile(pidFile, 'utf8').catch(() => '0'))
    const process = result.code === 0 && pid > 0 ? identify(pid) : undefined
    if (process) return process
    const output = await readFile(log, 'utf8').catch(() => '')
    const cause = new Error(`${name} ${command}: exit ${result.code}: ${output.slice(-2000)}`)
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
    // A failed checkpoint dumps the whole object; the beginning names the problem.
    const output = result.stderr.trim().slice(0, 600)
    throw new Fault('internal', 'runtime_failed', `${name} ${command} failed: ${output}`)
  }

  return {
    query: (command, args) => ask(command, args),

    run: (cellId, bundleDir) => start('run', cellId, bundleDir, ['--detach']),

    create: (cellId, bundleDir) => start('create', cellId, bundleDir, []),

    restore: (cellId, bundleDir, memoryDir) =>
      start('restore', cellId, bundleDir, ['--detach', '--image-path', memoryDir]),

    execute: async (command, args, options) => void (await ask(command, args, options)),

    async removeState(cellId) {
      const own = (await entries()).filter((entry) => ownerOf(entry) === cellId)
      await Promise.all(own.map((entry) => rm(join(root, entry), { recursive: true, force: true })))
    },

    async list() {
      return [...new Set((await entries()).map(ownerOf))]
    },
  }
}
