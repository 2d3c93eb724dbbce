import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { randomName } from '../../linux/kernel-random.ts'

/** Returns the ID of this boot. The file is on tmpfs and vanishes with the sandbox's memory. */
export async function readBootId(file: string): Promise<string> {
  const found = await readFile(file, 'utf8').catch(() => '')
  if (found !== '') return found
  const bootId = randomName()
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, bootId, { mode: 0o600 })
  return bootId
}
