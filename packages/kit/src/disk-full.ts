/** Fault reason for failures that only more disk space can fix. */
export const diskFull = 'disk_full'

/** Whether the kernel reported ENOSPC or EDQUOT, to this process or to a program that it ran. */
export function isOutOfSpace(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if ('code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT')) return true
  return outOfSpace.test(error.message) || isOutOfSpace(error.cause)
}

/** Texts of C libraries, and of Go in lower case. */
const outOfSpace = /no space left on device|disk quota exceeded/i
