import { accessSync, constants, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

const shared = '/dev/shm'
const tmpfs = 0x0102_1994
const neededBytes = 1024 ** 3

/** Names the folder that the test runner removes after the end of a test process. */
export const memoryFolderVariable = 'ATOLL_TEST_MEMORY_FOLDER'

/**
 * Returns the parent of folders for small stores of tests: in memory if the machine has 1 GiB of shared memory free, else
 * the usual one for temporary files. Each commit to a store waits for the disk, which takes up to half a second while
 * other tests use it.
 */
export function memoryFolder(): string {
  const given = process.env[memoryFolderVariable]
  if (given !== undefined) return given
  try {
    const { type, bavail, bsize } = statfsSync(shared)
    accessSync(shared, constants.W_OK)
    return type === tmpfs && bavail * bsize >= neededBytes ? shared : tmpdir()
  } catch {
    return tmpdir() // not every container has shared memory
  }
}
