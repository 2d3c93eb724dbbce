import { mkdir, readdir, readFile, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { waitFor } from '@atoll/kit/wait'
import { neutralName } from '../domain/cell.ts'
import { createDiskUsage } from './disk-usage.ts'
import type { DiskUsage } from './disk-usage.ts'
import { checkInodes } from './disks.ts'
import type { MountNamespace } from './mount-namespace.ts'

/**
 * The root file system of a sandbox: the template's layers read-only below, a disk image of its own above. The
 * image is sparse and has the size that was promised, so a full disk is the sandbox's own ENOSPC.
 *
 * Threats: what is on the disk and in the merged tree is the sandbox's. We write there only once, before
 * a disk is first used, and never read or follow a path in it.
 */
export interface RootfsStore {
  mount(request: RootfsRequest): Promise<string>
  /** Brings what is written to the disk of a cell that stands still into its image. */
  sync(cellId: string): Promise<void>
  /** Mounts nothing but a disk, as it is, for us to write to; gives where. */
  mountDisk(cellId: string, image: string): Promise<string>
  /**
   * Copies what was written to the disk of a cell that is not mounted, with the owners that the sandbox saw. Gives what the
   * copy takes.
   */
  extract(
    cellId: string,
    source: { readonly image: string; readonly idShift: number },
    target: string,
  ): Promise<number>
  /** Unmounts and frees the loop device. Succeeds when nothing is mounted. */
  unmount(cellId: string): Promise<void>
  /** Ids of cells that have something mounted. */
  list(): Promise<string[]>
  /** What is taken on the disks of those that have one. */
  usage(cellIds: readonly string[]): Promise<ReadonlyMap<string, DiskUsage>>
}

export interface RootfsRequest {
  readonly cellId: string
  /** The image of its disk: an empty one, or one that was mounted here or for another cell before. */
  readonly image: string
  readonly layers: readonly string[]
  readonly nameservers: readonly string[]
  readonly idShift: number
}

export function createRootfsStore(parts: {
  readonly namespace: MountNamespace
  /** Holds one mount point a sandbox for each of its two mounts; gone after a reboot, as the mounts are. */
  readonly mountsDir: string
  /** Shows a folder that sandboxes with shifted ids wrote to with the ids that they saw. */
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
    // Who starts it may be killed with it, and whoever removes a failed start does so once.
    await attempt().catch(attempt)
    await Promise.all([rootfs, disk].map((point) => rmdir(point).catch(() => {})))
  }
  return {
    async mount(request) {
      const { disk, rootfs } = pointsOf(request.cellId)
      await mkdir(disk, { recursive: true, mode: 0o711 })
      await mkdir(rootfs, { recursive: true, mode: 0o711 })
      const resolver = request.nameservers.map((address) => `nameserver ${address}\n`).join('')
      // Layers are given top first, as overlayfs wants them.
      const layers = request.layers.toReversed().join(':')
      const args = [
        request.image,
        disk,
        rootfs,
        layers,
        String(request.idShift),
        neutralName,
        resolver,
      ]
      await namespace.run('sh', ['-euc', mountScript, 'mount', ...args])
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
        // What was mounted there before may be busy for a moment.
        await waitFor(
          'a disk to be let go',
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

/** Files without content take no room on the disk of a sandbox, but each takes an inode of the machine's. */
async function countFiles(namespace: MountNamespace, disk: string): Promise<number> {
  const [total = 0, free = 0] = (await namespace.run('stat', ['-f', '-c', '%c %d', disk]))
    .split(' ')
    .map(Number)
  return total - free
}

const releaseLimitMs = 30_000
/** Gigabytes may have to be written, by a disk that others use too. */
const extractLimitMs = 600_000

/** Values are arguments, never script text. A disk that was used before has all of this already. */
const mountScript = `
image=$1 disk=$2 rootfs=$3 layers=$4 shift=$5 hostname=$6 resolver=$7
mount -n -o loop,nodev,noatime "$image" "$disk"
cd "$disk"
if [ ! -e upper ]; then
  mkdir upper work upper/etc
  # gVisor puts a file system in memory over a /tmp that is empty; ours is on the disk.
  mkdir -m 1777 upper/tmp upper/tmp/.X11-unix
  printf '%s\\n' "$hostname" > upper/etc/hostname
  printf '127.0.0.1 localhost\\n127.0.1.1 %s\\n::1 localhost ip6-localhost\\n' "$hostname" > upper/etc/hosts
  printf '%s' "$resolver" > upper/etc/resolv.conf
  [ "$shift" = 0 ] || chown -R "$shift:$shift" upper work
fi
mount -n -t overlay -o "nodev,lowerdir=$layers,upperdir=upper,workdir=work" overlay "$rootfs"
`

/** Lazily: a dying process may hold it for a moment, and nobody can reach it by name any more. */
const unmountScript = `
for point; do
  if grep -q " $point " /proc/self/mountinfo; then umount -l "$point"; fi
done
`

/** Loop devices whose file lies below `dir`; a mount that is gone frees its device by itself. */
export async function loopDevicesBelow(dir: string): Promise<string[]> {
  const devices: string[] = []
  for (const name of await readdir('/sys/block')) {
    if (!name.startsWith('loop')) continue
    const file = await readFile(`/sys/block/${name}/loop/backing_file`, 'utf8').catch(() => '')
    if (file.startsWith(`${dir}/`)) devices.push(`/dev/${name}`)
  }
  return devices
}
