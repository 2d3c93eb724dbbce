import { constants, copyFile, open } from 'node:fs/promises'

/** Flags from linux/fcntl.h: `O_TMPFILE` is this bit plus `O_DIRECTORY`, whose value depends on the architecture. */
const temporaryFile = 0o20_000_000 | constants.O_DIRECTORY | constants.O_RDWR

/**
 * Tests whether the file system of a folder supports reflinks. The probe uses unnamed files, which the kernel removes
 * with the process.
 */
export async function canShareBlocks(folder: string): Promise<boolean> {
  try {
    await using from = await open(folder, temporaryFile, 0o600)
    await using to = await open(folder, temporaryFile, 0o600)
    await from.writeFile('probe')
    const [source, copy] = [from, to].map(({ fd }) => `/proc/self/fd/${fd}`)
    if (source === undefined || copy === undefined) return false
    await copyFile(source, copy, constants.COPYFILE_FICLONE_FORCE)
    return true
  } catch {
    return false
  }
}
