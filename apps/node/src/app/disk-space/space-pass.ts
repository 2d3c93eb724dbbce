import type { Ballast, HostSpace, SpaceLevel } from '../../domain/host/disk-space.ts'
import { divideSpace } from '../../domain/host/space-division.ts'
import type { Allowances, DiskState } from '../../domain/host/space-division.ts'

/** Findings and decisions of one pass. */
export interface Pass {
  readonly host: HostSpace
  readonly disks: readonly DiskState[]
  readonly level: SpaceLevel
  readonly reserveBytes: number
  readonly spareBytes: number
  readonly slackBytes: number
  readonly untrimmedSlackBytes: number
  readonly untrimmedGrowthBytes: number
  /** When the next pass is due. */
  readonly dueMs: number
}

export interface PassPorts {
  readHost(): HostSpace
  readDisks(): readonly DiskState[]
  limit(disks: readonly DiskState[], allowances: Allowances | undefined): void
  readonly ballast: Pick<Ballast, 'bytes'>
  reserveBytes(totalBytes: number): number
  /** True: discarding is expensive, so untrimmed disks are trusted to grow no faster than assumed. */
  readonly isDiscardingSlow: boolean
  nowMs(): number
}

/** Assumed write speed. A sandbox that writes slower never meets a limit that the host did not need. */
const assumedBytesPerMs = 1024 ** 2
const roomyMs = 2000
const tightMs = { least: 100, most: 1000 }
/** Interval when nothing is left to share: only deletions change anything then. */
const fullMs = 250
/** Maximum share of time spent in passes. */
const passShare = 1 / 30
/** Space is scarce when fewer reserves than this are left. */
export const scarceReserves = 4

/** Reads the host and its disks, divides the space and limits the disks. `admitted`: see `DiskSpace.admitDisk`. */
export function divideAndLimit(
  ports: PassPorts,
  { heldBytes, admitted }: { readonly heldBytes: number; readonly admitted: ReadonlySet<string> },
): Pass {
  const beganMs = ports.nowMs()
  // Read the host last: write-back in between is then counted twice rather than not at all.
  const disks = ports.readDisks().map((disk) => trustUnlessAdmitted(disk, admitted))
  const host = ports.readHost()
  const reserveBytes = ports.reserveBytes(host.totalBytes)
  const untrimmedGrowthBytes = ports.isDiscardingSlow ? assumedBytesPerMs * tightMs.most : Infinity
  const { allowances, ...division } = divideSpace(disks, {
    freeBytes: host.freeBytes,
    reserveBytes: Math.max(0, reserveBytes - ports.ballast.bytes()),
    heldBytes,
    untrimmedGrowthBytes,
  })
  ports.limit(disks, allowances)
  const takesMs = ports.nowMs() - beganMs
  const intervalMs = allowances ? intervalFor(leastAllowed(disks, allowances)) : roomyMs
  return {
    host,
    disks,
    reserveBytes,
    ...division,
    untrimmedGrowthBytes,
    level: levelOf(division.spareBytes, reserveBytes, allowances !== undefined),
    dueMs: beganMs + Math.max(intervalMs, takesMs / passShare),
  }
}

/** Returns the pass with `bytes` less to give, for space that was promised without another pass. */
export function withLess(pass: Pass, bytes: number): Pass {
  return {
    ...pass,
    slackBytes: pass.slackBytes - bytes,
    untrimmedSlackBytes: pass.untrimmedSlackBytes - bytes,
    spareBytes: pass.spareBytes - bytes,
  }
}

/** Counts a disk that is not admitted yet as trimmed: only Atoll has written to it, so it has no stale blocks to speak of. */
function trustUnlessAdmitted(disk: DiskState, admitted: ReadonlySet<string>): DiskState {
  return admitted.has(disk.id) ? disk : { ...disk, isTrimmed: true }
}

function levelOf(spareBytes: number, reserveBytes: number, isLimited: boolean): SpaceLevel {
  if (spareBytes <= 0) return 'full'
  if (spareBytes < scarceReserves * reserveBytes && isLimited) return 'scarce'
  return isLimited ? 'shared' : 'roomy'
}

/** Returns the least growth of a limited disk, or infinity when every disk may fill up. */
function leastAllowed(disks: readonly DiskState[], allowances: Allowances): number {
  const limited = disks.flatMap(({ id, freeBytes }) => {
    const allowed = allowances.get(id) ?? freeBytes
    if (allowed === 'locked') return 1
    return allowed < freeBytes ? allowed : []
  })
  return Math.min(...limited)
}

/** Returns a shorter interval for smaller shares, which are used up sooner. */
function intervalFor(leastAllowance: number): number {
  if (leastAllowance === 0) return fullMs
  return Math.min(tightMs.most, Math.max(tightMs.least, leastAllowance / assumedBytesPerMs))
}
