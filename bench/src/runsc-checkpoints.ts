/**
 * `runsc checkpoint` and `runsc restore` by hand, of a sandbox that Atoll runs and with the flags that Atoll uses: what
 * a copy of this very sandbox costs without Atoll. The copies share its files and have no network.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '@atoll/kit/run'
import type { CloudByHand, HandSandbox } from '@atoll/system-tests/cloud-by-hand'
import { cellOf, namesOf } from '@atoll/system-tests/host-state'
import { timed } from './scenario.ts'

export interface RunscCheckpoints {
  /** Milliseconds that it takes to write memory and state while the sandbox stays. */
  checkpoint(): Promise<number>
  /** Milliseconds until `count` copies run that were started at once, from the latest checkpoint. They are ended then. */
  restore(count: number): Promise<number>
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
  cloud: CloudByHand,
  sandbox: HandSandbox,
): Promise<RunscCheckpoints> {
  const names = await namesOf(cloud.installation.dataDir)
  const cellId = await cellOf(names, sandbox.sandboxID)
  const dir = join(names.dataDir, 'raw-copies')
  const memoryDir = join(dir, 'memory')
  const root = join(names.runDir, 'state', 'raw-copies')
  const runsc = (state: string, args: readonly string[]) =>
    run('nsenter', [
      `--mount=${names.runDir}/mnt`,
      '--wd=/',
      '--',
      // What stays in the background must hold no pipe of ours: we would wait for its end.
      ...['sh', '-c', 'exec runsc "$@" </dev/null >/dev/null 2>&1', 'x', `--root=${state}`],
      ...flags,
      ...args,
    ])
  let made = 0

  async function prepare(): Promise<RestoredCopy> {
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
  }

  const start = ({ id, bundleDir }: RestoredCopy) =>
    runsc(root, ['restore', '--detach', '--bundle', bundleDir, '--image-path', memoryDir, id])
  const end = async ({ id, bundleDir }: RestoredCopy) => {
    await runsc(root, ['delete', '--force', id])
    await rm(bundleDir, { recursive: true })
  }

  return {
    async checkpoint() {
      await rm(memoryDir, { recursive: true, force: true })
      await mkdir(memoryDir, { recursive: true })
      const state = join(names.runDir, 'state', 'runsc')
      const args = ['checkpoint', ...checkpointFlags, '--image-path', memoryDir, cellId]
      return timed(() => runsc(state, args))
    },
    async restore(count) {
      const copies = await Promise.all(Array.from({ length: count }, prepare))
      try {
        return await timed(() => Promise.all(copies.map(start)))
      } finally {
        await Promise.all(copies.map(end))
      }
    },
  }
}

interface RestoredCopy {
  readonly id: string
  readonly bundleDir: string
}

/** As much of it as is changed here. */
interface Bundle {
  readonly linux: { readonly namespaces: readonly { readonly type: string }[] }
}
