import { spawn } from 'node:child_process'
import { closeSync, openSync, statSync } from 'node:fs'
import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run, tryRun } from '@atoll/kit/run'
import type { Runner } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { createSpawnedRunner } from './spawned-runner.ts'
import type { SpawnedRunner } from './spawned-runner.ts'

/**
 * All mounts of sandboxes live in one mount namespace of their own, which is kept by a file and so outlives us.
 * It is made once: a private copy per command would pin the mounts of every other sandbox, and their disks would
 * not be freed. In it `/proc/sys/net` is empty, without which runsc mistakes every network namespace for the
 * root one on kernels that show the core settings everywhere.
 */
export type MountNamespace = Runner

export async function openMountNamespace(runDir: string): Promise<MountNamespace> {
  const file = join(runDir, 'mnt')
  await mkdir(runDir, { recursive: true, mode: 0o711 })
  const mounted = await mountPoints()
  if (!mounted.has(runDir)) {
    // The kernel refuses to keep a mount namespace in a mount that is shared with others. Passable, not readable:
    // root of a runc sandbox is an ordinary user on the way to its root file system.
    await run('mount', ['-t', 'tmpfs', '-o', 'mode=0711', 'tmpfs', runDir])
    await run('mount', ['--make-private', runDir])
  }
  if (!mounted.has(file)) {
    await writeFile(file, '')
    await keepNewNamespace(file)
  }
  const namespace = enter(file)
  await namespace.run('sh', ['-euc', maskScript, 'mask', plainProcDir(runDir)])
  return namespace
}

/**
 * The kernel lets a namespace be kept only in one that is older, and tells their age by numbers that each processor
 * draws from a batch of its own. Where we ourselves run in a young one, as under a service manager, a new one may look
 * older: the next try may be on another processor.
 */
async function keepNewNamespace(file: string): Promise<void> {
  const attempt = () => run('unshare', [`--mount=${file}`, '--propagation', 'slave', 'true'])
  for (let attempts = 1; attempts < keepAttempts; attempts += 1) {
    const kept = await attempt().then(
      () => true,
      () => false,
    )
    if (kept) return
  }
  await attempt()
}

const keepAttempts = 50

/** Runs commands in the namespace that is open by a process that stays in it, so that none of them needs a fork of ours. */
export function stayInMountNamespace(runDir: string, guest: string): SpawnedRunner {
  return createSpawnedRunner({
    spawner: ['setpriv', ...entranceTo(join(runDir, 'mnt')), guest, 'spawner', '--tied'],
    dir: runDir,
  })
}

/**
 * Opens the root of the namespace, by which this process reaches its mounts without being in it. The descriptor pins the
 * root mount alone: disks below it can be unmounted.
 */
export async function openNamespaceRoot(
  runDir: string,
): Promise<Disposable & { readonly path: string }> {
  const file = join(runDir, 'mnt')
  const visitor = spawn('nsenter', [`--mount=${file}`, '--', 'cat'], {
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  // Without it nothing is in the namespace, which is seen below.
  visitor.once('error', () => {})
  try {
    const inside = statSync(file).ino
    const ofVisitor = () => statSync(`/proc/${visitor.pid}/ns/mnt`).ino
    await waitFor('the mount namespace to be entered', async () => ofVisitor() === inside)
    const fd = openSync(`/proc/${visitor.pid}/root`, 'r')
    return { path: `/proc/self/fd/${fd}`, [Symbol.dispose]: () => closeSync(fd) }
  } finally {
    visitor.kill('SIGKILL')
  }
}

/** The namespace, if there is one. */
export async function findMountNamespace(runDir: string): Promise<MountNamespace | undefined> {
  const file = join(runDir, 'mnt')
  return (await mountPoints()).has(file) ? enter(file) : undefined
}

/** With the file goes the namespace, once no process is in it, and with it every mount. */
export async function removeMountNamespace(runDir: string): Promise<void> {
  const mounted = await mountPoints()
  for (const path of [join(runDir, 'mnt'), runDir]) {
    if (mounted.has(path)) await run('umount', [path])
  }
  await rmdir(runDir).catch(() => {})
}

/** Inside the namespace: a /proc with nothing masked, for the settings of a network namespace. */
export function plainProcDir(runDir: string): string {
  return join(runDir, 'proc')
}

const maskScript = `
masked() { grep -q " $1 " /proc/self/mountinfo; }
masked /proc/sys/net || mount -t tmpfs -o ro tmpfs /proc/sys/net
mkdir -p /run/netns "$1"
masked "$1" || mount -t proc proc "$1"
# Ours alone: names of other people's network namespaces are not our business.
masked '/run/netns' && [ -e /run/netns/.atoll ] || { mount -t tmpfs tmpfs /run/netns; touch /run/netns/.atoll; }
`

/** Each command enters by itself. */
function enter(file: string): MountNamespace {
  const entrance = entranceTo(file)
  return {
    run: (command, args, options) => run('setpriv', [...entrance, command, ...args], options),
    tryRun: (command, args, options) => tryRun('setpriv', [...entrance, command, ...args], options),
  }
}

/** For setpriv: a command must not outlive us; after a crash the successor decides what stays. */
function entranceTo(file: string): readonly string[] {
  return ['--pdeathsig', 'KILL', 'nsenter', `--mount=${file}`, '--wd=/', '--']
}

async function mountPoints(): Promise<Set<string>> {
  const table = await readFile('/proc/self/mountinfo', 'utf8')
  return new Set(table.split('\n').map((line) => line.split(' ')[4] ?? ''))
}
