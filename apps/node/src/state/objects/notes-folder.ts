import { mkdir, rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { syncFolder } from '@atoll/kit/atomic-file'
import { earlierNameOfStore, nameOfStore } from '@atoll/objects/store-name'

/**
 * Returns the folder for the notes about a store, below `dir`. Notes are about one place: after a change of the bucket, all
 * has to be uploaded there. Takes over the folder of an earlier release, whose name depends on the spelling of the endpoint.
 */
export async function openNotesFolder(
  dir: string,
  place: Parameters<typeof nameOfStore>[0],
): Promise<string> {
  const [folder, earlier] = [join(dir, nameOfStore(place)), join(dir, earlierNameOfStore(place))]
  if (!(await exists(folder)) && (await exists(earlier))) {
    await rename(earlier, folder)
    await syncFolder(dir)
  }
  await mkdir(folder, { recursive: true, mode: 0o700 })
  return folder
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
