import { readdir, readFile } from 'node:fs/promises'
import { waitFor } from '@atoll/kit/wait'

/** Long enough for the last process of a killed sandbox to end. */
const releaseLimitMs = 30_000

/** Lists loop devices whose file is below `dir`. Unmounting frees a device automatically. */
export async function loopDevicesBelow(dir: string): Promise<string[]> {
  return listDevices((file) => file.startsWith(`${dir}/`))
}

/**
 * Waits until no loop device uses the image: a lazy unmount ends when the last process of the sandbox is gone. The lock of
 * the guest program prevents a second mount only if the first one took the lock, and agents of older releases did not.
 */
export async function awaitUnused(image: string, limitMs = releaseLimitMs): Promise<void> {
  const isUnused = async () => (await listDevices((file) => file === image)).length === 0
  await waitFor('the disk of a paused sandbox to be free', isUnused, { timeoutMs: limitMs })
}

async function listDevices(isMeant: (file: string) => boolean): Promise<string[]> {
  const names = (await readdir('/sys/block')).filter((name) => name.startsWith('loop'))
  const devices = await Promise.all(
    names.map(async (name) => {
      const path = `/sys/block/${name}/loop/backing_file`
      const file = await readFile(path, 'utf8').catch(() => '')
      return isMeant(file.replace(/\n$/, '')) ? [`/dev/${name}`] : []
    }),
  )
  return devices.flat()
}
