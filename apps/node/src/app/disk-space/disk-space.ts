import {
  divideSpace,
  guaranteedBytes,
  minimumInodes,
  tooFewInodes,
  tooLittleSpace,
  tooMuchCommitted,
} from '../../domain/host/disk-space.ts'
import { createDiscardSwitch } from './discard-switch.ts'
import type { DiscardPorts } from './discard-switch.ts'
import type { Ballast, DiskState, HostSpace, SpaceLevel } from '../../domain/host/disk-space.ts'

/**
 * Divides the space of the data file system among the disks of sandboxes and the operations that write next to them.
 * Everything is synchronous, so nothing in this process can run between a reading and the decision based on it.
 */
export interface DiskSpace {
  /**
   * Reserves space for an operation that writes up to `bytes`. Throws a fault when the host does not have the space.
   */
  hold(bytes: number, purpose: string): Disposable
  /** Limits a disk of this size that was just mounted. Must be called before anything inside can write. */
  admitDisk(sizeBytes: number): void
  /** Throws a fault when no other sandbox should be created. */
  checkSandbox(wanted: { readonly diskBytes: number; committedBytes(): number }): void
  /** Runs a pass if one is due. Must be called often. */
  look(): void
  report(): SpaceReport
}

export interface SpaceReport {
  readonly level: SpaceLevel
  readonly totalBytes: number
  readonly freeBytes: number
  readonly reserveBytes: number
  /** Space that sandboxes and operations may still take. */
  readonly spareBytes: number
}

export interface DiskSpacePorts extends DiscardPorts {
  readHost(): HostSpace
  readDisks(): readonly DiskState[]
  limit(disks: readonly DiskState[], allowances: ReadonlyMap<string, number> | undefined): void
  readonly ballast: Ballast
  reserveBytes(totalBytes: number): number
  /** Limit for the total size of all disks, as a multiple of the data file system's size. */
  readonly overcommit: number | undefined
  nowMs(): number
  onLevel(report: SpaceReport): void
}

/** Free space below which the ballast is released. */
const ballastBelowBytes = 32 * 1024 ** 2
const roomyMs = 2000
/** Assumed write speed. A sandbox that writes slower never meets a limit that the host did not need. */
const assumedBytesPerMs = 1024 ** 2
const tightMs = { least: 100, most: 1000 }
/** Interval when nothing is left to share: only deletions change anything then. */
const fullMs = 250
/** Maximum share of time spent in passes. */
const passShare = 1 / 30

export function createDiskSpace(ports: DiskSpacePorts): DiskSpace {
  let heldBytes = 0
  let last = pass()
  let isRestoring = false
  const discards = createDiscardSwitch(ports, last.disks)

  function pass() {
    const beganMs = ports.nowMs()
    // Read the host last: write-back in between is then counted twice rather than not at all.
    const disks = ports.readDisks()
    const host = ports.readHost()
    const wantedReserve = ports.reserveBytes(host.totalBytes)
    const reserveBytes = Math.max(0, wantedReserve - ports.ballast.bytes())
    const division = divideSpace(disks, { ...host, reserveBytes, heldBytes })
    const { spareBytes, slackBytes, allowances } = division
    ports.limit(disks, allowances)
    const takesMs = ports.nowMs() - beganMs
    const least = Math.min(...disks.flatMap((disk) => limitedTo(disk, allowances) ?? []))
    return {
      host,
      disks,
      reserveBytes: wantedReserve,
      spareBytes,
      slackBytes,
      level: levelOf(spareBytes, wantedReserve, allowances !== undefined),
      dueMs: beganMs + Math.max(allowances ? intervalFor(least) : roomyMs, takesMs / passShare),
    }
  }

  function look(): void {
    const before = last.level
    last = pass()
    if (last.level !== before) ports.onLevel(report())
    adjustBallast()
    switchDiscards()
  }

  function adjustBallast(): void {
    const { freeBytes } = last.host
    if (freeBytes < ballastBelowBytes && ports.ballast.bytes() > 0) ports.ballast.release()
    const isPlenty = last.spareBytes > last.reserveBytes / 4
    if (!isPlenty || isRestoring || ports.ballast.bytes() > 0) return
    isRestoring = true
    void ports.ballast
      .restore()
      .catch(ports.onError)
      .finally(() => (isRestoring = false))
  }

  function switchDiscards(): void {
    const isScarce = last.level === 'scarce' || last.level === 'full'
    const isPlenty = last.spareBytes > 2 * scarceReserves * last.reserveBytes
    if (isScarce) discards.turnOn(last.disks)
    else if (isPlenty || last.level === 'roomy') discards.turnOff(last.disks)
  }

  function report(): SpaceReport {
    const { level, host, reserveBytes, spareBytes } = last
    const { totalBytes, freeBytes } = host
    return { level, totalBytes, freeBytes, reserveBytes, spareBytes }
  }

  /** Accepts on the basis of the last pass, but refuses only after a new one: space may have been freed since. */
  function requireSpace(bytes: number, purpose: string): void {
    if (last.spareBytes < bytes) look()
    const { spareBytes, reserveBytes } = last
    if (spareBytes >= bytes) return
    throw tooLittleSpace({ purpose, neededBytes: bytes, spareBytes, reserveBytes })
  }

  function take(bytes: number): void {
    last = {
      ...last,
      slackBytes: last.slackBytes - bytes,
      spareBytes: last.spareBytes - bytes,
    }
  }

  return {
    hold(bytes, purpose) {
      requireSpace(bytes, purpose)
      heldBytes += bytes
      // When disks share space, their limits must shrink first.
      if (last.slackBytes >= bytes) take(bytes)
      else look()
      let isHeld = true
      return {
        [Symbol.dispose]() {
          if (isHeld) heldBytes -= bytes
          isHeld = false
        },
      }
    },

    admitDisk(sizeBytes) {
      if (last.slackBytes >= sizeBytes) take(sizeBytes)
      else look()
    },

    checkSandbox({ diskBytes, committedBytes }) {
      const purpose = 'creating a sandbox'
      requireSpace(guaranteedBytes, purpose)
      if (lacksInodes(last.host)) look()
      const { freeInodes, totalBytes } = last.host
      if (lacksInodes(last.host)) {
        throw tooFewInodes({ purpose, neededInodes: minimumInodes, freeInodes })
      }
      if (ports.overcommit === undefined) return
      const limitBytes = ports.overcommit * totalBytes
      const sumBytes = committedBytes() + diskBytes
      if (sumBytes > limitBytes) throw tooMuchCommitted(sumBytes, limitBytes)
    },

    look() {
      if (ports.nowMs() >= last.dueMs) look()
    },

    report,
  }
}

/** Returns undefined for a disk that may fill up. */
function limitedTo(
  { id, freeBytes }: DiskState,
  allowances: ReadonlyMap<string, number> | undefined,
): number | undefined {
  const allowed = allowances?.get(id) ?? freeBytes
  return allowed < freeBytes ? allowed : undefined
}

function lacksInodes({ hasInodeLimit, freeInodes }: HostSpace): boolean {
  return hasInodeLimit && freeInodes < minimumInodes
}

function levelOf(spareBytes: number, reserveBytes: number, isLimited: boolean): SpaceLevel {
  if (spareBytes <= 0) return 'full'
  if (spareBytes < scarceReserves * reserveBytes && isLimited) return 'scarce'
  return isLimited ? 'shared' : 'roomy'
}

/** Space is scarce when fewer reserves than this are left. */
const scarceReserves = 4

/** Returns a shorter interval for smaller shares, which are used up sooner. */
function intervalFor(leastAllowance: number): number {
  if (leastAllowance === 0) return fullMs
  return Math.min(tightMs.most, Math.max(tightMs.least, leastAllowance / assumedBytesPerMs))
}
