import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { randomLabel } from '@atoll/kit/id'
import { cellDir } from '../domain/host/installation.ts'
import type { Host } from './host.ts'
import type { Scratch } from '../images/skopeo.ts'

/** Limit for an image, downloaded and unpacked. */
const sizeMb = 10_240
/** Free space needed to start: the size of an image is only known during the download. */
const leastRoomBytes = 1024 ** 3

/**
 * Opens a temporary disk without a cell. Its folder is among those of cells but has no record, so the next start
 * removes it after a crash.
 */
export async function openScratchDisk({
  installation,
  disks,
  space,
  rootfs,
  erase,
}: Host): Promise<Scratch> {
  const id = `c${randomLabel(20)}`
  const dir = cellDir(installation, id)
  const image = join(dir, 'disk.img')
  const remove = () => erase(id)
  try {
    using _room = disks.reserveSpace(leastRoomBytes, 'fetching an image')
    await mkdir(dir, { recursive: true, mode: 0o700 })
    await disks.create(image, sizeMb)
    const disk = await rootfs.mountDisk(id, image)
    await space.admitDisk({ id, sizeBytes: sizeMb * 1024 ** 2 })
    return { dir, disk, [Symbol.asyncDispose]: remove }
  } catch (error) {
    await remove()
    throw error
  }
}
