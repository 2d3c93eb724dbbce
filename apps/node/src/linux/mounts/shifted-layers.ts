import { spawn } from 'node:child_process'
import { mkdir, readlink, rmdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { waitFor } from '@atoll/kit/wait'
import type { MountNamespace } from './mount-namespace.ts'
import { unmountReplaced } from './replaced-source.ts'

/** Layers for sandboxes with shifted IDs: one read-only mount per layer serves all of them. */
export interface ShiftedLayers {
  ensure(layerDir: string): Promise<string>
  /** Unmounts a layer; call it before the layer is deleted. Succeeds when the layer is not mounted. */
  release(layerDir: string): Promise<void>
}

export function createShiftedLayers(parts: {
  readonly namespace: MountNamespace
  readonly dir: string
  readonly idShift: number
  readonly idCount: number
}): ShiftedLayers {
  const { namespace, dir, idShift, idCount } = parts
  const ready = new Map<string, Promise<string>>()

  async function mountShifted(layerDir: string): Promise<string> {
    const target = join(dir, basename(layerDir))
    await mkdir(target, { recursive: true, mode: 0o700 })
    await namespace.run('sh', ['-euc', unmountReplaced, 'unmount', layerDir, target])
    const mounts = await namespace.run('cat', ['/proc/self/mountinfo'])
    if (mounts.includes(` ${target} `)) return target
    await mountMapped(namespace, { source: layerDir, target, map: `0 ${idShift} ${idCount}` })
    return target
  }

  return {
    ensure(layerDir) {
      const mounted = ready.get(layerDir) ?? mountShifted(layerDir)
      ready.set(layerDir, mounted)
      mounted.catch(() => ready.delete(layerDir))
      return mounted
    },

    async release(layerDir) {
      ready.delete(layerDir)
      const target = join(dir, basename(layerDir))
      const mounts = await namespace.run('cat', ['/proc/self/mountinfo'])
      if (!mounts.includes(` ${target} `)) return
      await namespace.run('umount', ['-l', target])
      await rmdir(target).catch(() => {})
    },
  }
}

/** Creates a function that mounts a folder written with shifted IDs so that it shows the IDs that the sandboxes saw. */
export function createUnshiftedMount(
  namespace: MountNamespace,
  { idShift, idCount }: { readonly idShift: number; readonly idCount: number },
): (source: string, target: string) => Promise<void> {
  return (source, target) =>
    mountMapped(namespace, { source, target, map: `${idShift} 0 ${idCount}` })
}

async function mountMapped(
  namespace: MountNamespace,
  {
    source,
    target,
    map,
  }: { readonly source: string; readonly target: string; readonly map: string },
): Promise<void> {
  await using owner = await holdUserNamespace(map)
  const program = join(import.meta.dirname, 'idmap.ts')
  await namespace.run(process.execPath, [program, source, target, `/proc/${owner.pid}/ns/user`])
}

/** Keeps a user namespace alive with a process that waits inside until it is disposed. */
async function holdUserNamespace(map: string): Promise<AsyncDisposable & { readonly pid: number }> {
  const holder = spawn('unshare', ['--user', '--', 'cat'], { stdio: ['pipe', 'ignore', 'ignore'] })
  const { pid } = holder
  if (pid === undefined) throw new Error('unshare did not start')
  const ours = await readlink('/proc/self/ns/user')
  await waitFor(
    'a new user namespace',
    async () => {
      const theirs = await readlink(`/proc/${pid}/ns/user`).catch(() => ours)
      return theirs !== ours
    },
    { timeoutMs: 30_000 },
  )
  for (const file of ['uid_map', 'gid_map']) await writeFile(`/proc/${pid}/${file}`, `${map}\n`)
  return {
    pid,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => holder.once('close', resolve))
      holder.stdin.end()
      await closed
    },
  }
}
