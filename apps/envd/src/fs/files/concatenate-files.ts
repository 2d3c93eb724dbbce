import { open, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import type { ReadableFile } from '../../domain/files/regular-file.ts'
import type { User } from '../../domain/access/user.ts'
import { randomName } from '../../linux/kernel-random.ts'
import { fileFault } from './file-fault.ts'
import { createFolders } from './create-folders.ts'
import { writeAll } from './write-all.ts'

/** Writes a temporary file next to the destination and renames it when complete. */
export async function concatenateFiles(
  sources: readonly string[],
  destination: string,
  { owner, openToRead }: JoinParts,
): Promise<void> {
  await checkSources(sources, openToRead)
  const isFolder = await stat(destination).then(
    (found) => found.isDirectory(),
    () => false,
  )
  if (isFolder) throw new Fault('invalid', 'not_a_file', `'${destination}' is a directory`)
  await createFolders(dirname(destination), owner)
  const fresh = join(dirname(destination), `.compose-${randomName()}`)
  try {
    {
      await using file = await open(fresh, 'wx', 0o666)
      await file.chown(owner.uid, owner.gid)
      await writeAll(file, contentsOf(sources, openToRead))
    }
    await rename(fresh, destination)
  } catch (error) {
    await rm(fresh, { force: true })
    throw error
  }
  for (const source of sources) await rm(source, { force: true })
}

interface JoinParts {
  readonly owner: User
  readonly openToRead: (path: string) => Promise<ReadableFile>
}

/** Runs before anything is written, so that a missing source changes nothing. */
async function checkSources(
  sources: readonly string[],
  openToRead: JoinParts['openToRead'],
): Promise<void> {
  for (const source of sources) {
    await using _file = await openToRead(source).catch((error: unknown) => {
      throw fileFault(error, source)
    })
  }
}

async function* contentsOf(sources: readonly string[], openToRead: JoinParts['openToRead']) {
  for (const source of sources) {
    await using file = await openToRead(source)
    yield* file.read(0)
  }
}
