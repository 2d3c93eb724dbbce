import { spawn } from 'node:child_process'
import { closeSync, openSync, statSync } from 'node:fs'
import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { run, tryRun } from '@atoll/kit/run'
import type { Runner } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { createSpawnedRunner } from '../processes/spawned-runner.ts'
import type { SpawnedRunner } from '../processes/spawned-runner.ts'

/**
 * Mount namespace that holds the mounts of all sandboxes. A bind-mounted file keeps it alive across restarts of the
 * server. It is created once: a private copy per command would pin the mounts of all other sandboxes, and their disks
 * would not be freed. `/proc/sys/net` is empty inside: on kernels that show the core settings everywhere, runsc would
 * otherwise take every network namespace for the root one.
 */
export type MountNamespace = Runner

export async function openMountNamespace(runDir: string): Promise<MountNamespace> {
  const file = join(runDir, 'mnt')
  await mkdir(runDir, { recursive: true, mode: 0o711 })
  const mounted = await mountPoints()
  if (!mounted.has(runDir)) {
    // The kernel refuses to keep a mount namespace in a shared mount. Mode 0711, not 0700: root of a runc sandbox is an
    // ordinary user of the host and must traverse this folder to its root file system.
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
 * Creates a namespace and retries when the kernel refuses. A namespace can be kept only in an older one, and the kernel
 * compares age by sequence numbers that each CPU draws from its own batch. When the server itself runs in a young
 * namespace, as under a service manager, a new one may look older; the next attempt runs on another CPU.
 */
async function keepNewNamespace(file: string): Promise<void> {
  const unshare = ['unshare', `--mount=${file}`, '--propagation', 'slave', 'true']
  const cpus = await allowedCpus()
  const attempt = (cpu = 0) => run('taskset', ['--cpu-list', String(cpu), ...unshare])
  for (let attempts = 1; attempts < keepAttempts; attempts += 1) {
    const kept = await attempt(cpus[attempts % cpus.length]).then(
      () => true,
      () => false,
    )
    if (kept) return
  }
  await attempt(cpus[0])
}

/** Lists the CPUs that this process may use. The kernel writes them like `0-3,8`. */
async function allowedCpus(): Promise<readonly number[]> {
  const status = await readFile('/proc/self/status', 'utf8')
  const ranges = /^Cpus_allowed_list:\s*(\S+)$/m.exec(status)?.[1]?.split(',') ?? []
  return ranges.flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })
}

const keepAttempts = 50

/** Runs commands through a spawner process that stays in the open namespace, so that no command forks the server. */
export function stayInMountNamespace(runDir: string, guest: string): SpawnedRunner {
  return createSpawnedRunner({
    spawner: ['setpriv', ...enterArguments(join(runDir, 'mnt')), guest, 'spawner', '--tied'],
    dir: runDir,
  })
}

/**
 * Opens the root of the namespace, so that this process can reach its mounts without entering it. The descriptor pins
 * only the root mount: disks below it can be unmounted.
 */
export async function openNamespaceRoot(
  runDir: string,
): Promise<Disposable & { readonly path: string }> {
  const file = join(runDir, 'mnt')
  const visitor = spawn('nsenter', [`--mount=${file}`, '--', 'cat'], {
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  // A failed spawn makes the wait below fail.
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

/** Returns the namespace if it exists. */
export async function findMountNamespace(runDir: string): Promise<MountNamespace | undefined> {
  const file = join(runDir, 'mnt')
  return (await mountPoints()).has(file) ? enter(file) : undefined
}

/** Unmounts the file. The kernel drops the namespace and all its mounts once no process is in it. */
export async function removeMountNamespace(runDir: string): Promise<void> {
  const mounted = await mountPoints()
  for (const path of [join(runDir, 'mnt'), runDir]) {
    if (mounted.has(path)) await unmount(path)
  }
  await rmdir(runDir).catch(() => {})
}

/** Retries while the mount is busy: processes of a server that has just ended may need a moment to end too. */
async function unmount(path: string): Promise<void> {
  const deadline = performance.now() + busyLimitMs
  for (;;) {
    const { code, stderr } = await tryRun('umount', [path])
    if (code === 0) return
    if (!stderr.includes('busy')) throw new Error(`Cannot unmount ${path}: ${stderr.trim()}`)
    if (performance.now() > deadline) {
      throw new Error(`Cannot unmount ${path}: a process uses it; find it with: fuser -vm ${path}`)
    }
    await sleep(busyIntervalMs)
  }
}

const busyLimitMs = 30_000
const busyIntervalMs = 50

/** Returns the path of an unmasked /proc inside the namespace, used for the settings of network namespaces. */
export function plainProcDir(runDir: string): string {
  return join(runDir, 'proc')
}

const maskScript = `
masked() { grep -q " $1 " /proc/self/mountinfo; }
masked /proc/sys/net || mount -t tmpfs -o ro tmpfs /proc/sys/net
mkdir -p /run/netns "$1"
masked "$1" || mount -t proc proc "$1"
# A private folder, without the network namespaces of other programs.
masked '/run/netns' && [ -e /run/netns/.atoll ] || { mount -t tmpfs tmpfs /run/netns; touch /run/netns/.atoll; }
`

/** Runs each command with its own `nsenter`. */
function enter(file: string): MountNamespace {
  const enterArgs = enterArguments(file)
  return {
    run: (command, args, options) => run('setpriv', [...enterArgs, command, ...args], options),
    tryRun: (command, args, options) =>
      tryRun('setpriv', [...enterArgs, command, ...args], options),
  }
}

/** Arguments for setpriv. Commands die with the server: after a crash the next server decides what to keep. */
function enterArguments(file: string): readonly string[] {
  return ['--pdeathsig', 'KILL', 'nsenter', `--mount=${file}`, '--wd=/', '--']
}

async function mountPoints(): Promise<Set<string>> {
  const table = await readFile('/proc/self/mountinfo', 'utf8')
  return new Set(table.split('\n').map((line) => line.split(' ')[4] ?? ''))
}
