/**
 * File system that can simulate a power loss: it keeps flushed data and loses the rest. Its journal is committed only
 * on request, so unflushed data is not in the image.
 */
import { mkdtemp, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '@atoll/kit/run'

export interface VolatileDisk extends AsyncDisposable {
  readonly path: string
  /** Saves the image as it is now. */
  capture(): Promise<void>
  /** Restores the captured image. The file system must not be in use. */
  restore(): Promise<void>
}

export async function createVolatileDisk(sizeMb: number): Promise<VolatileDisk> {
  const folder = await mkdtemp('/var/tmp/atoll-volatile-')
  const [path, image, captured] = ['mount', 'image', 'captured'].map((name) => join(folder, name))
  if (path === undefined || image === undefined || captured === undefined) throw new Error(folder)
  const mount = () => run('mount', ['-o', 'loop,commit=3600', image, path])
  const unmount = () => run('umount', [path])
  await run('mkdir', [path])
  await run('truncate', ['-s', `${sizeMb}M`, image])
  await run('mkfs.ext4', ['-q', '-F', '-E', 'lazy_itable_init=0,lazy_journal_init=0', image])
  await mount()
  return {
    path,
    capture: async () => void (await run('cp', ['--sparse=always', image, captured])),
    async restore() {
      await unmount()
      await rename(captured, image)
      await mount()
    },
    async [Symbol.asyncDispose]() {
      await unmount()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
