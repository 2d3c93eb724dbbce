import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { envdNodeFlags } from '@atoll/envd/node-flags'
import { unclaimedHostname } from '../domain/sandboxes/cell.ts'
import type { StartRequest } from '../domain/sandboxes/runtime.ts'

/** Runtime-specific parts of the OCI bundle; `writeBundle` adds what both runtimes share. */
export interface BundleOptions {
  readonly cgroupParent: string
  readonly capabilities: readonly string[]
  readonly mounts: readonly Mount[]
  readonly initArgs: readonly string[]
  readonly linux: Readonly<Record<string, unknown>>
  readonly namespaces: readonly { readonly type: string }[]
  readonly pidsLimit: number
}

export interface Mount {
  readonly destination: string
  readonly type: string
  readonly source: string
  readonly options?: readonly string[]
}

/** Path inside the sandbox of the node's folder with envd and its Node.js. */
const insideDir = '/.atoll'

const searchPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export async function writeBundle(request: StartRequest, options: BundleOptions): Promise<void> {
  await rm(request.bundleDir, { recursive: true, force: true })
  await mkdir(request.bundleDir, { mode: 0o700 })
  await writeFile(join(request.bundleDir, 'config.json'), JSON.stringify(bundle(request, options)))
}

function bundle({ cell, slot, rootfs, envdDir }: StartRequest, options: BundleOptions) {
  const { capabilities } = options
  return {
    ociVersion: '1.0.2',
    hostname: cell.owner?.sandboxId ?? unclaimedHostname,
    root: { path: rootfs, readonly: false },
    process: {
      terminal: false,
      user: { uid: 0, gid: 0 },
      cwd: '/',
      args: [`${insideDir}/guest`, 'init', ...options.initArgs, '--', ...envdCommand],
      env: [`ATOLL_INIT_TOKEN=${cell.initToken}`, ...envdVariables],
      // No ambient capabilities: a command run as an ordinary user starts with none.
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
      noNewPrivileges: false, // sudo inside needs its setuid bit
    },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      {
        destination: '/dev',
        type: 'tmpfs',
        source: 'tmpfs',
        options: ['nosuid', 'mode=755', 'size=65536k'],
      },
      {
        destination: '/dev/pts',
        type: 'devpts',
        source: 'devpts',
        options: ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620'],
      },
      {
        destination: '/dev/shm',
        type: 'tmpfs',
        source: 'shm',
        // Half of the memory, like the Linux default: files left in /dev/shm must not starve the processes.
        options: ['nosuid', 'nodev', 'mode=1777', `size=${Math.floor(cell.memoryMb / 2)}m`],
      },
      {
        destination: '/run',
        type: 'tmpfs',
        source: 'tmpfs',
        options: ['nosuid', 'nodev', 'mode=755', 'size=65536k'],
      },
      envdMount(envdDir),
      ...options.mounts,
    ],
    linux: {
      cgroupsPath: `/${options.cgroupParent}/${cell.cellId}`,
      resources: {
        cpu: { shares: startingShares, period: 100_000, quota: cell.cpuCount * 100_000 },
        memory: { limit: cell.memoryMb * 1024 * 1024, swap: cell.memoryMb * 1024 * 1024 },
        pids: { limit: options.pidsLimit },
      },
      namespaces: [
        { type: 'pid' },
        { type: 'ipc' },
        { type: 'uts' },
        { type: 'mount' },
        { type: 'network', path: `/run/netns/${slot.namespace}` },
        ...options.namespaces,
      ],
      ...options.linux,
    },
  }
}

/** Mounts the node's folder with envd. */
export function envdMount(envdDir: string): Mount {
  const options = ['bind', 'ro', 'nosuid', 'nodev']
  return { destination: insideDir, type: 'bind', source: envdDir, options }
}

/**
 * CPU weight during start, 100 times the default: otherwise a machine full of busy sandboxes would never start another
 * one. The node resets it once envd knows its sandbox.
 */
const startingShares = 102_400

const envdVariables = [
  `PATH=${searchPath}`,
  `ATOLL_PTY_ADDON=${insideDir}/pty.node`,
  `ATOLL_LIBC_ADDON=${insideDir}/koffi.node`,
  `NODE_COMPILE_CACHE=${insideDir}/cache`,
  'NODE_COMPILE_CACHE_PORTABLE=1',
  // Otherwise each thread of envd keeps freed memory of its own, half a MiB in all.
  'MALLOC_ARENA_MAX=1',
]

const envdCommand = [
  `${insideDir}/lib/ld.so`,
  '--library-path',
  `${insideDir}/lib`,
  '--preload',
  `${insideDir}/lib/node-memory.so`,
  `${insideDir}/node`,
  ...envdNodeFlags,
  `${insideDir}/envd.js`,
]
