/**
 * Baseline for pause and fork: `runsc checkpoint` and `runsc restore` of a running sandbox, with the flags that Atoll
 * uses. The restored copies share its files and have no network.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '@atoll/kit/run'
import type { HttpCloud, HttpSandbox } from '@atoll/system-tests/http-cloud'
import { cellOf, namesOf } from '@atoll/system-tests/host-state'
import { timed } from './scenario.ts'

export interface RunscCheckpoints {
  /** Checkpoints the sandbox, which keeps running. Returns milliseconds. */
  checkpoint(): Promise<number>
  /** Restores `count` copies of the latest checkpoint at once, then deletes them. Returns milliseconds until all run. */
  restore(count: number): Promise<number>
}

/** A sandbox that bare runsc restored. */
export interface RawCopy {
  readonly id: string
  readonly bundleDir: string
}

/** The single steps, for scenarios with other sequences. */
export interface RunscCommands {
  /** Prepares the bundle of a copy. */
  prepare(): Promise<RawCopy>
  /** Checkpoints the source, or a copy of it, to a folder of this name. The sandbox keeps running. */
  checkpoint(name: string, copy?: RawCopy): Promise<void>
  restore(copy: RawCopy, name: string): Promise<void>
  exec(copy: RawCopy, command: readonly string[]): Promise<void>
  /** Ends a copy and removes its bundle. */
  end(copy: RawCopy): Promise<void>
}

const flags = [
  '--platform=systrap',
  '--network=sandbox',
  '--net-raw',
  '--net-disconnect-ok',
  '--overlay2=none',
] as const
const checkpointFlags = [
  '--leave-running',
  '--compression=none',
  '--exclude-committed-zero-pages',
] as const

export async function openRunscCheckpoints(
  cloud: HttpCloud,
  sandbox: HttpSandbox,
): Promise<RunscCheckpoints> {
  const { prepare, checkpoint, restore, end } = await openRunscCommands(cloud, sandbox)
  return {
    checkpoint: () => timed(() => checkpoint('memory')),
    async restore(count) {
      const copies = await Promise.all(Array.from({ length: count }, prepare))
      try {
        return await timed(() => Promise.all(copies.map((copy) => restore(copy, 'memory'))))
      } finally {
        await Promise.all(copies.map(end))
      }
    },
  }
}

export async function openRunscCommands(
  cloud: HttpCloud,
  sandbox: HttpSandbox,
): Promise<RunscCommands> {
  const names = await namesOf(cloud.installation.dataDir)
  const cellId = await cellOf(names, sandbox.sandboxID)
  const dir = join(names.dataDir, 'raw-copies')
  const root = join(names.runDir, 'state', 'raw-copies')
  const sourceRoot = join(names.runDir, 'state', 'runsc')
  const runsc = (state: string, args: readonly string[]) =>
    run('nsenter', [
      `--mount=${names.runDir}/mnt`,
      '--wd=/',
      '--',
      // A background process that inherits our pipes would keep `run` waiting.
      ...['sh', '-c', 'exec runsc "$@" </dev/null >/dev/null 2>&1', 'x', `--root=${state}`],
      ...flags,
      ...args,
    ])
  let made = 0
  return {
    async prepare() {
      const id = `${names.cgroup}x${(made += 1)}`
      const bundleDir = join(dir, id)
      await mkdir(bundleDir, { recursive: true })
      const source = join(names.dataDir, 'cells', cellId, 'bundle', 'config.json')
      const config: Bundle = JSON.parse(await readFile(source, 'utf8'))
      const { linux } = config
      const namespaces = linux.namespaces.map(({ type }) => ({ type }))
      const copied = { ...linux, namespaces, cgroupsPath: `/${names.cgroup}/${id}` }
      await writeFile(join(bundleDir, 'config.json'), JSON.stringify({ ...config, linux: copied }))
      return { id, bundleDir }
    },
    async checkpoint(name, copy) {
      const memoryDir = join(dir, name)
      await rm(memoryDir, { recursive: true, force: true })
      await mkdir(memoryDir, { recursive: true })
      const state = copy ? root : sourceRoot
      const id = copy?.id ?? cellId
      await runsc(state, ['checkpoint', ...checkpointFlags, '--image-path', memoryDir, id])
    },
    async restore({ id, bundleDir }, name) {
      const image = ['--image-path', join(dir, name)]
      await runsc(root, ['restore', '--detach', '--bundle', bundleDir, ...image, id])
    },
    async exec({ id }, command) {
      await runsc(root, ['exec', id, ...command])
    },
    async end({ id, bundleDir }) {
      await runsc(root, ['delete', '--force', id])
      await rm(bundleDir, { recursive: true })
    },
  }
}

/** The part of the OCI bundle that is changed here. */
interface Bundle {
  readonly linux: { readonly namespaces: readonly { readonly type: string }[] }
}
