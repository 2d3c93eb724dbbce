import { open } from 'node:fs/promises'

/** Makes the names in a folder survive a crash of the machine: a rename or a new file is lost without it. */
export async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, 'r')
  await folder.sync()
}
