import { mkdir, mkdtemp, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '@atoll/kit/run'

/** Separate file system of a given size for the data of an installation. */
export interface SmallFileSystem extends AsyncDisposable {
  /** Data folder on the file system. */
  readonly dir: string
}

export async function makeFileSystem(sizeMb: number): Promise<SmallFileSystem> {
  const parentDir = await mkdtemp('/var/tmp/atoll-test-fs-')
  const image = join(parentDir, 'image')
  const mountPoint = join(parentDir, 'mount')
  await using file = await open(image, 'w')
  await file.truncate(sizeMb * 1024 ** 2)
  await run('mkfs.ext4', ['-q', '-F', image])
  await mkdir(mountPoint)
  await run('mount', ['-o', 'loop', image, mountPoint])
  const dir = join(mountPoint, 'data')
  await mkdir(dir, { mode: 0o700 })
  return {
    dir,
    async [Symbol.asyncDispose]() {
      await run('umount', [mountPoint])
      await rm(parentDir, { recursive: true })
    },
  }
}
