import type { Clock } from '@atoll/kit/clock'
import type { IssuedFiles } from '../domain/issued-files.ts'

const intervalMs = 60 * 60 * 1000
/** A node that was away for longer keeps files that were deleted meanwhile. */
const retentionMs = 90 * 24 * 60 * 60 * 1000

/** One pass: forgets IDs of snapshots and templates that were deleted long ago. */
export async function forgetIssued(ports: {
  readonly issuedFiles: Pick<IssuedFiles, 'forgetUnused'>
  readonly clock: Clock
}): Promise<number> {
  const now = ports.clock.now()
  await ports.issuedFiles.forgetUnused(now, new Date(now.getTime() - retentionMs))
  return intervalMs
}
