import { mkdir, readdir, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { waitFor } from '@atoll/kit/wait'
import { unclaimedHostname } from '../../domain/sandboxes/cell.ts'
import { createDiskUsage } from '../disks/disk-usage.ts'
import type { DiskUsage } from '../disks/disk-usage.ts'
import { checkInodes } from '../disks/disk-images.ts'
import type { MountNamespace } from './mount-namespace.ts'

/**
 * Root file system of a sandbox: read-only template layers below, a disk image above. The image is sparse and has the
 * promised size, so a full disk causes ENOSPC only inside that sandbox.
 *
 * Threats: the sandbox controls the content of the disk and of the merged tree. Atoll writes there only before the
 * first use of a disk. Only `linux/changes` reads it, and follows no path in it.
 */
export interface RootfsStore {
  mount(request: RootfsRequest): Promise<string>
  /** Writes the dirty pages of a frozen cell's disk to its image. */
  sync(cellId: string): Promise<void>
  /** Mounts only the disk, writable, and returns the mount point. */
  mountDisk(cellId: string, image: string): Promise<string>
  /**
   * Copies the files on the disk of an unmounted cell, with the owners that the sandbox saw. Returns the size of the
   * copy in bytes.
   */
  extract(
    cellId: string,
    source: { readonly image: string; readonly idShift: number },
    target: string,
  ): Promise<number>
  /** Unmounts the cell and frees its loop device. Succeeds when nothing is mounted. */
  unmount(cellId: string): Promise<void>
  /** Lists the IDs of cells that have mounts. */
  list(): Promise<string[]>
  /** Measures the disks of these cells; cells without a disk are left out. */
  usage(cellIds: readonly string[]): Promise<ReadonlyMap<string, DiskUsage>>
}

export interface RootfsRequest {
  readonly cellId: string
  /** Image of the cell's disk: empty, or used before by this or another cell. */
  readonly image: string
  readonly layers: readonly string[]
  readonly nameservers: readonly string[]
  readonly idShift: number
}

export function createRootfsStore(parts: {
  readonly namespace: MountNamespace
  /** Guest program; undefined when nothing will be mounted. */
  readonly guest: string | undefined
  /** Folder with two mount points per sandbox; lost at reboot like the mounts. */
  readonly mountsDir: string
  /** Mounts a folder written with shifted IDs so that it shows the IDs that the sandbox saw. */
  readonly mountUnshifted: (source: string, target: string) => Promise<void>
}): RootfsStore {
  const { namespace, mountsDir } = parts
  const pointsOf = (cellId: string) => ({
    disk: join(mountsDir, 'disk', cellId),
    rootfs: join(mountsDir, 'rootfs', cellId),
  })
  async function unmount(cellId: string): Promise<void> {
    const { disk, rootfs } = pointsOf(cellId)
    const attempt = () => namespace.run('sh', ['-euc', unmountScript, 'unmount', rootfs, disk])
    // Retry: the spawner may be killed together with the command, and cleanup of a failed start runs only once.
    await attempt().catch(attempt)
    await Promise.all([rootfs, disk].map((point) => rmdir(point).catch(() => {})))
  }
  return {
    async mount(request) {
      const { disk, rootfs } = pointsOf(request.cellId)
      await mkdir(disk, { recursive: true, mode: 0o711 })
      await mkdir(rootfs, { recursive: true, mode: 0o711 })
      const resolver = request.nameservers.map((address) => `nameserver ${address}\n`).join('')
      // overlayfs takes the top layer first.
      const layers = request.layers.toReversed().join(':')
      const args = [
        request.image,
        disk,
        rootfs,
        layers,
        String(request.idShift),
        unclaimedHostname,
        resolver,
      ]
      if (parts.guest === undefined) throw new Error('no guest program mounts root file systems')
      await namespace.run(parts.guest, ['rootfs', ...args])
      return rootfs
    },

    async sync(cellId) {
      await namespace.run('sync', ['-f', pointsOf(cellId).disk])
    },

    async mountDisk(cellId, image) {
      const { disk } = pointsOf(cellId)
      await mkdir(disk, { recursive: true, mode: 0o711 })
      await namespace.run('mount', ['-n', '-o', 'loop,nodev,noatime', image, disk])
      return disk
    },

    async extract(cellId, { image, idShift }, target) {
      const { disk, rootfs } = pointsOf(cellId)
      await mkdir(disk, { recursive: true, mode: 0o711 })
      await mkdir(rootfs, { recursive: true, mode: 0o711 })
      try {
        // The previous mount of the disk may be busy for a moment.
        await waitFor(
          'the previous mount of the disk to end',
          async () => {
            const args = ['-n', '-o', 'loop,ro,nodev,noatime', image, disk]
            return (await namespace.tryRun('mount', args)).code === 0
          },
          { timeoutMs: releaseLimitMs },
        )
        await checkInodes(target, await countFiles(namespace, disk), 'keeping this layer')
        if (idShift !== 0) await parts.mountUnshifted(disk, rootfs)
        const from = `${idShift === 0 ? disk : rootfs}/upper/.`
        await namespace.run('cp', ['--archive', from, target], { timeoutMs: extractLimitMs })
        const size = ['--summarize', '--block-size=1', target]
        return Number.parseInt(await namespace.run('du', size, { timeoutMs: extractLimitMs }), 10)
      } finally {
        await unmount(cellId)
      }
    },

    unmount,

    async list() {
      const names = await Promise.all(
        ['disk', 'rootfs'].map((name) => readdir(join(mountsDir, name)).catch(() => [])),
      )
      return [...new Set(names.flat())]
    },

    usage: createDiskUsage(namespace, join(mountsDir, 'disk')),
  }
}

/** Counts inodes in use. Empty files take no space on the sandbox's disk, but each copy takes an inode of the host. */
async function countFiles(namespace: MountNamespace, disk: string): Promise<number> {
  const [total = 0, free = 0] = (await namespace.run('stat', ['-f', '-c', '%c %d', disk]))
    .split(' ')
    .map(Number)
  return total - free
}

const releaseLimitMs = 30_000
/** Allows time to write gigabytes to a busy disk. */
const extractLimitMs = 600_000

/** Unmounts lazily: a dying process may keep the mount busy for a moment, and no process can reach it by name. */
const unmountScript = `
for point; do
  if grep -q " $point " /proc/self/mountinfo; then umount -l "$point"; fi
done
`
