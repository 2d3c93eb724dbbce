import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Replaces a file as a whole: after a crash there is the old one or the new one. On disk when this returns. */
export async function writeDurably(path: string, text: string, mode: number): Promise<void> {
  const next = `${path}.${process.pid}.next`
  await rm(next, { force: true })
  const file = await open(next, 'wx', mode)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(next, path)
  const folder = await open(dirname(path), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
