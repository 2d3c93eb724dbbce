/** The reason of a fault that only more disk space cures. */
export const diskFull = 'disk_full'

/** Whether the kernel said so, to us or to a program that we ran. */
export function isOutOfSpace(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if ('code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT')) return true
  return error.message.includes('No space left on device') || isOutOfSpace(error.cause)
}
