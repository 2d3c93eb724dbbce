import {
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  rmdir,
  stat,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { randomHex } from '@atoll/kit/id'
import { run } from '@atoll/kit/run'
import { createDiskUsage } from './disk-usage.ts'
import type { DiskUsage } from './disk-usage.ts'
import type { MountNamespace } from './mount-namespace.ts'

/**
 * The root file system of a sandbox: the template's layers read-only below, a disk image of its own above. The
 * image is sparse and has the size that was promised, so a full disk is the sandbox's own ENOSPC.
 *
 * Threats: what is on the disk and in the merged tree is the sandbox's. We write there only once, before
 * the sandbox first runs, and never read or follow a path in it.
 */
export interface RootfsStore {
  mount(request: RootfsRequest): Promise<string>
  /** Unmounts and frees the loop device. Succeeds when nothing is mounted. */
  unmount(sandboxId: string): Promise<void>
  /** Ids of sandboxes that have something mounted. */
  list(): Promise<string[]>
  /** What is taken on the disks of those that have one. */
  usage(sandboxIds: readonly string[]): Promise<ReadonlyMap<string, DiskUsage>>
}

export interface RootfsRequest {
  readonly sandboxId: string
  readonly layers: readonly string[]
  readonly diskSizeMb: number
  readonly nameservers: readonly string[]
  readonly idShift: number
}

export function createRootfsStore(parts: {
  readonly namespace: MountNamespace
  /** Holds one mount point a sandbox for each of its two mounts; gone after a reboot, as the mounts are. */
  readonly mountsDir: string
  readonly emptyDisksDir: string
  /** The image of a sandbox's disk. */
  readonly diskImage: (sandboxId: string) => string
}): RootfsStore {
  const { namespace, mountsDir } = parts
  const pointsOf = (sandboxId: string) => ({
    disk: join(mountsDir, 'disk', sandboxId),
    rootfs: join(mountsDir, 'rootfs', sandboxId),
  })
  return {
    async mount(request) {
      const { disk, rootfs } = pointsOf(request.sandboxId)
      await mkdir(disk, { recursive: true, mode: 0o711 })
      await mkdir(rootfs, { recursive: true, mode: 0o711 })
      const empty = await ensureEmptyDisk(parts.emptyDisksDir, request.diskSizeMb)
      const image = parts.diskImage(request.sandboxId)
      await run('cp', ['--reflink=auto', '--sparse=always', empty, image])
      const resolver = request.nameservers.map((address) => `nameserver ${address}\n`).join('')
      // Layers are given top first, as overlayfs wants them.
      const layers = request.layers.toReversed().join(':')
      const args = [
        image,
        disk,
        rootfs,
        layers,
        String(request.idShift),
        request.sandboxId,
        resolver,
      ]
      await namespace.run('sh', ['-euc', mountScript, 'mount', ...args])
      return rootfs
    },

    async unmount(sandboxId) {
      const { disk, rootfs } = pointsOf(sandboxId)
      const mounted = await namespaceMounts(namespace)
      for (const point of [rootfs, disk]) {
        // Lazily: a dying process may hold it for a moment, and nobody can reach it by name any more.
        if (mounted.includes(point)) await namespace.run('umount', ['-l', point])
        await rmdir(point).catch(() => {})
      }
    },

    async list() {
      const names = await Promise.all(
        ['disk', 'rootfs'].map((name) => readdir(join(mountsDir, name)).catch(() => [])),
      )
      return [...new Set(names.flat())]
    },

    usage: createDiskUsage(namespace, join(mountsDir, 'disk')),
  }
}

/** Values are arguments, never script text. */
const mountScript = `
image=$1 disk=$2 rootfs=$3 layers=$4 shift=$5 hostname=$6 resolver=$7
mount -n -o loop,nodev,noatime "$image" "$disk"
cd "$disk"
mkdir upper work upper/etc
# gVisor puts a file system in memory over a /tmp that is empty; ours is on the disk.
mkdir -m 1777 upper/tmp upper/tmp/.X11-unix
printf '%s\\n' "$hostname" > upper/etc/hostname
printf '127.0.0.1 localhost\\n127.0.1.1 %s\\n::1 localhost ip6-localhost\\n' "$hostname" > upper/etc/hosts
printf '%s' "$resolver" > upper/etc/resolv.conf
[ "$shift" = 0 ] || chown -R "$shift:$shift" upper work
mount -n -t overlay -o "nodev,lowerdir=$layers,upperdir=upper,workdir=work" overlay "$rootfs"
`

/** Formatted once per size; a sandbox's disk is a sparse copy of it. No journal: a disk does not outlive a power cut. */
async function ensureEmptyDisk(dir: string, sizeMb: number): Promise<string> {
  const path = join(dir, `empty-${sizeMb}.img`)
  if (await stat(path).catch(() => undefined)) return path
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const temporary = `${path}.${randomHex(4)}.tmp`
  try {
    await writeFile(temporary, '', { mode: 0o600 })
    await truncate(temporary, sizeMb * 1024 * 1024)
    const features = ['-O', '^has_journal', '-E', 'lazy_itable_init=1,nodiscard,root_owner=0:0']
    await run('mkfs.ext4', ['-q', '-F', '-m', '0', ...features, temporary])
    await rename(temporary, path)
  } finally {
    await rm(temporary, { force: true })
  }
  return path
}

async function namespaceMounts(namespace: MountNamespace): Promise<string[]> {
  const table = await namespace.run('cat', ['/proc/self/mountinfo'])
  return table.split('\n').map((line) => line.split(' ')[4] ?? '')
}

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
