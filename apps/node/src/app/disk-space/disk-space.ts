import {
  minimumInodes,
  tooFewInodes,
  tooLittleSpace,
  tooMuchCommitted,
} from '../../domain/host/disk-space.ts'
import type { Ballast, HostSpace, SpaceLevel } from '../../domain/host/disk-space.ts'
import { guaranteedBytes } from '../../domain/host/space-division.ts'
import { createDiscardSwitch } from './discard-switch.ts'
import type { DiscardPorts } from './discard-switch.ts'
import { divideAndLimit, scarceReserves, withLess } from './space-pass.ts'
import type { Pass, PassPorts } from './space-pass.ts'

/**
 * Divides the space of the data file system among the disks of sandboxes and the operations that write next to them.
 * Passes are synchronous, so nothing in this process can run between a reading and the decision based on it.
 */
export interface DiskSpace {
  /**
   * Reserves space for an operation that writes up to `bytes`. Throws a fault when the host does not have the space.
   */
  hold(bytes: number, purpose: string): Disposable
  /** Limits a disk that was just mounted. Must end before a sandbox can write to the disk. */
  admitDisk(disk: NewDisk): Promise<void>
  /** Throws a fault when no other sandbox should be created. */
  checkSandbox(wanted: WantedSandbox): void
  /** Runs a pass if one is due. Must be called often. */
  runPassIfDue(): void
  report(): SpaceReport
}

interface NewDisk {
  readonly id: string
  readonly sizeBytes: number
}

interface WantedSandbox {
  readonly diskBytes: number
  committedBytes(): number
}

export interface SpaceReport {
  readonly level: SpaceLevel
  readonly totalBytes: number
  readonly freeBytes: number
  readonly reserveBytes: number
  /** Space that sandboxes and operations may still take. */
  readonly spareBytes: number
}

export interface DiskSpacePorts extends DiscardPorts, PassPorts {
  readonly ballast: Ballast
  /** Limit for the total size of all disks, as a multiple of the data file system's size. */
  readonly overcommit: number | undefined
  nowMs(): number
  onLevel(report: SpaceReport): void
}

/** Interval of passes while disks are switched. */
const switchingMs = 100

export function createDiskSpace(ports: DiskSpacePorts): DiskSpace {
  // Disks that were mounted before this process started have been admitted by an earlier agent.
  const admitted = new Set(ports.readDisks().map(({ id }) => id))
  const ballast = createBallastKeeper(ports)
  const discards = createDiscardSwitch(ports)
  let heldBytes = 0
  let last = divideAndLimit(ports, { heldBytes, admitted })

  function runPass(): void {
    const before = last.level
    last = divideAndLimit(ports, { heldBytes, admitted })
    forgetUnmounted(admitted, last)
    if (last.level !== before) ports.onLevel(toReport(last))
    ballast.adjust(last)
    if (switchDiscards())
      last = { ...last, dueMs: Math.min(last.dueMs, ports.nowMs() + switchingMs) }
  }

  function switchDiscards(): boolean {
    const disks = last.disks.filter(({ id }) => admitted.has(id))
    if (needsDiscards(last)) return discards.turnOn(disks)
    return needsNoDiscards(last) && discards.turnOff(disks)
  }

  /** Accepts on the basis of the last pass, but refuses only after a new one: space may have been freed since. */
  function requireSpace(bytes: number, purpose: string): void {
    if (last.spareBytes < bytes) runPass()
    requireSpare(last, bytes, purpose)
  }

  return {
    hold(bytes, purpose) {
      requireSpace(bytes, purpose)
      heldBytes += bytes
      // When disks share space, their limits must shrink first.
      if (last.slackBytes >= bytes) last = withLess(last, bytes)
      else runPass()
      return onceDisposed(() => (heldBytes -= bytes))
    },

    async admitDisk({ id, sizeBytes }) {
      if (needsDiscards(last, sizeBytes)) await discards.turnOnNow(id)
      admitted.add(id)
      if (last.slackBytes >= sizeBytes) last = withLess(last, sizeBytes)
      else runPass()
    },

    checkSandbox(wanted) {
      requireSpace(guaranteedBytes, creating)
      if (lacksInodes(last.host)) runPass()
      checkInodesAndCommitment(last.host, wanted, ports.overcommit)
    },

    runPassIfDue() {
      if (ports.nowMs() >= last.dueMs) runPass()
    },

    report: () => toReport(last),
  }
}

const creating = 'creating a sandbox'

function forgetUnmounted(admitted: Set<string>, { disks }: Pass): void {
  const present = new Set(disks.map(({ id }) => id))
  for (const id of admitted) if (!present.has(id)) admitted.delete(id)
}

function requireSpare({ spareBytes, reserveBytes }: Pass, neededBytes: number, purpose: string) {
  if (spareBytes >= neededBytes) return
  throw tooLittleSpace({ purpose, neededBytes, spareBytes, reserveBytes })
}

/** Tests whether disks must be trimmed, ahead of need: a switch takes time. `anotherBytes`: size of a new disk. */
function needsDiscards(pass: Pass, anotherBytes = 0): boolean {
  const { untrimmedSlackBytes, untrimmedGrowthBytes, reserveBytes } = pass
  const left = untrimmedSlackBytes - Math.min(anotherBytes, untrimmedGrowthBytes)
  return left < scarceReserves * reserveBytes
}

/** Asks for much more than `needsDiscards`, so that single disks that come and go switch nothing. */
function needsNoDiscards({ untrimmedSlackBytes, reserveBytes, host }: Pass): boolean {
  return untrimmedSlackBytes > Math.max(2 * scarceReserves * reserveBytes, host.totalBytes / 8)
}

/** Free space below which the ballast is released. */
const ballastBelowBytes = 32 * 1024 ** 2

function createBallastKeeper({ ballast, onError }: DiskSpacePorts): { adjust(pass: Pass): void } {
  let isRestoring = false
  return {
    adjust({ host, spareBytes, reserveBytes }) {
      if (host.freeBytes < ballastBelowBytes && ballast.bytes() > 0) ballast.release()
      const isPlenty = spareBytes > reserveBytes / 4
      if (!isPlenty || isRestoring || ballast.bytes() > 0) return
      isRestoring = true
      void ballast
        .restore()
        .catch(onError)
        .finally(() => (isRestoring = false))
    },
  }
}

function checkInodesAndCommitment(
  host: HostSpace,
  { diskBytes, committedBytes }: WantedSandbox,
  overcommit: number | undefined,
): void {
  const { freeInodes, totalBytes } = host
  if (lacksInodes(host)) {
    throw tooFewInodes({ purpose: creating, neededInodes: minimumInodes, freeInodes })
  }
  if (overcommit === undefined) return
  const limitBytes = overcommit * totalBytes
  const sumBytes = committedBytes() + diskBytes
  if (sumBytes > limitBytes) throw tooMuchCommitted(sumBytes, limitBytes)
}

function lacksInodes({ hasInodeLimit, freeInodes }: HostSpace): boolean {
  return hasInodeLimit && freeInodes < minimumInodes
}

function toReport({ level, host, reserveBytes, spareBytes }: Pass): SpaceReport {
  const { totalBytes, freeBytes } = host
  return { level, totalBytes, freeBytes, reserveBytes, spareBytes }
}

function onceDisposed(work: () => void): Disposable {
  let isDone = false
  return {
    [Symbol.dispose]() {
      if (!isDone) work()
      isDone = true
    },
  }
}
