import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import type { ProcessIdentity } from '../domain/sandbox.ts'
import { identify } from '../linux/process.ts'
import type { MountNamespace } from '../linux/mount-namespace.ts'

/**
 * The command line that runsc and runc have in common. Ending a sandbox is not on it: `runsc delete` polls for a
 * second or more, while killing what is in the control group and forgetting the runtime's state takes milliseconds.
 */
export interface OciCommands {
  run(sandboxId: string, bundleDir: string): Promise<ProcessIdentity>
  /** Forgets what the runtime has noted of a sandbox whose processes are gone. */
  forget(sandboxId: string): Promise<void>
  list(): Promise<string[]>
}

export function createOciCommands(parts: {
  readonly namespace: MountNamespace
  readonly program: string
  readonly root: string
  readonly flags: readonly string[]
  /** Which sandbox a file or folder of the runtime's state belongs to. */
  readonly ownerOf: (entry: string) => string
}): OciCommands {
  const { namespace, program, root, ownerOf } = parts
  const entries = () => readdir(root).catch(() => [])
  return {
    async run(sandboxId, bundleDir) {
      await mkdir(root, { recursive: true, mode: 0o700 })
      const log = join(bundleDir, 'runtime.log')
      const pidFile = join(bundleDir, 'pid')
      const flags = [`--root=${root}`, `--log=${log}`, '--log-format=json', ...parts.flags]
      const args = [
        ...flags,
        'run',
        '--detach',
        '--pid-file',
        pidFile,
        '--bundle',
        bundleDir,
        sandboxId,
      ]
      // The sandbox inherits these three: it must not hold a pipe or a file of the host that it could fill.
      const result = await namespace.tryRun('sh', ['-c', detached, program, ...args])
      const pid = Number(await readFile(pidFile, 'utf8').catch(() => '0'))
      const process = result.code === 0 && pid > 0 ? identify(pid) : undefined
      if (process) return process
      const said = await readFile(log, 'utf8').catch(() => '')
      const cause = new Error(`${program} run: exit ${result.code}: ${said.slice(-2000)}`)
      throw new Fault('internal', 'runtime_failed', `${program} could not start the sandbox`, {
        cause,
      })
    },

    async forget(sandboxId) {
      const own = (await entries()).filter((entry) => ownerOf(entry) === sandboxId)
      await Promise.all(own.map((entry) => rm(join(root, entry), { recursive: true, force: true })))
    },

    async list() {
      return [...new Set((await entries()).map(ownerOf))]
    },
  }
}

const detached = 'exec "$0" "$@" </dev/null >/dev/null 2>&1'
