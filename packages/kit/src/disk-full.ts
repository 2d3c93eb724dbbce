/** Fault reason for failures that only more disk space can fix. */
export const diskFull = 'disk_full'

/** Whether the kernel reported ENOSPC or EDQUOT, to this process or to a program that it ran. */
export function isOutOfSpace(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if ('code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT')) return true
  return error.message.includes('No space left on device') || isOutOfSpace(error.cause)
}
