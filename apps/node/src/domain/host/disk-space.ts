import { diskFull } from '@atoll/kit/disk-full'
import { Fault } from '@atoll/kit/fault'

/**
 * Sandbox disks are sparse images on the data file system, so together they may promise more than that file system has.
 * These rules decide how much each mounted disk may still grow: never more, in sum, than the host can really store. A
 * sandbox that has used up its share gets ENOSPC at the write, before any data exists that the host could lose.
 */

/** A mounted disk image. */
export interface DiskState {
  readonly id: string
  /** Logical size of the image. */
  readonly sizeBytes: number
  /** Used by files inside, dirty pages included. */
  readonly usedBytes: number
  /** Free inside, counting dirty pages as used. */
  readonly freeBytes: number
  /** Allocated for the image on the data file system. */
  readonly imageBytes: number
}

export interface HostSpace {
  readonly totalBytes: number
  readonly freeBytes: number
  readonly freeInodes: number
  /** False on file systems without a fixed number of inodes. */
  readonly hasInodeLimit: boolean
}

/** A file that takes space only to be removed when nothing else is left. */
export interface Ballast {
  /** Allocated now; 0 once it is released. */
  bytes(): number
  release(): void
  restore(): Promise<void>
}

export interface SpaceDivision {
  /** Space the host can still give beyond all guarantees. Negative when its debts exceed its space. */
  readonly spareBytes: number
  /** Space left over if all disks filled up completely; 0 when they cannot. */
  readonly slackBytes: number
  /** Growth allowed to each disk. Undefined: all disks could fill up completely, so none is limited. */
  readonly allowances: ReadonlyMap<string, number> | undefined
}

/**
 * `roomy`: all disks could fill up. `shared`: disks are limited to their shares. `scarce`: little is left, and space of
 * deleted files is returned to the host at once. `full`: nothing is left above the reserve and the guarantees.
 */
export const spaceLevels = ['roomy', 'shared', 'scarce', 'full'] as const

export type SpaceLevel = (typeof spaceLevels)[number]

const mib = 1024 ** 2
const gib = 1024 ** 3

/** Space that sandboxes never get: for the store, records, logs and deletions. */
export function reserveFor(totalBytes: number, configuredMb: number | undefined): number {
  if (configuredMb !== undefined) return configuredMb * mib
  return Math.min(gib, Math.max(totalBytes / 20, Math.min(totalBytes / 10, 512 * mib)))
}

/** Used inside the disk, but not stored by the host yet: dirty pages, preallocated blocks, unwritten inode tables. */
export function debtBytes({ sizeBytes, freeBytes, imageBytes }: DiskState): number {
  return Math.max(0, sizeBytes - freeBytes - imageBytes)
}

/** The first 64 MiB that a sandbox writes are guaranteed: sandboxes that write more cannot take them away. */
export const guaranteedBytes = 64 * mib

function guaranteeOf({ freeBytes, usedBytes }: DiskState): number {
  return Math.min(freeBytes, Math.max(0, guaranteedBytes - usedBytes))
}

/** Divides the host's free space among the disks. `heldBytes`: space reserved for operations in progress. */
export function divideSpace(
  disks: readonly DiskState[],
  host: { readonly freeBytes: number; readonly reserveBytes: number; readonly heldBytes: number },
): SpaceDivision {
  const left =
    host.freeBytes - host.reserveBytes - host.heldBytes - sum(disks.map((disk) => debtBytes(disk)))
  const guarantees = disks.map(guaranteeOf)
  const spareBytes = left - sum(guarantees)
  const demands = disks.map(({ freeBytes }) => freeBytes)
  const slackBytes = Math.max(0, left - sum(demands))
  if (left >= sum(demands)) return { spareBytes, slackBytes, allowances: undefined }
  const shares =
    spareBytes < 0
      ? fill(guarantees, left)
      : fill(
          demands.map((demand, index) => demand - (guarantees[index] ?? 0)),
          spareBytes,
        ).map((share, index) => share + (guarantees[index] ?? 0))
  const allowances = new Map(disks.map(({ id }, index) => [id, shares[index] ?? 0]))
  return { spareBytes, slackBytes, allowances }
}

/** Max-min fair division: small demands are met in full, and the others get equal shares. */
function fill(demands: readonly number[], pools: number): number[] {
  const level = fillLevel(demands, pools)
  return demands.map((demand) => Math.min(demand, level))
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

function fillLevel(demands: readonly number[], pools: number): number {
  let left = Math.max(0, pools)
  const ascending = demands.toSorted((a, b) => a - b)
  for (const [index, demand] of ascending.entries()) {
    const even = Math.floor(left / (ascending.length - index))
    if (demand > even) return even
    left -= demand
  }
  return Infinity
}

export function tooLittleSpace(text: {
  readonly purpose: string
  readonly neededBytes: number
  readonly spareBytes: number
  readonly reserveBytes: number
}): Fault {
  const { purpose, neededBytes, spareBytes, reserveBytes } = text
  return new Fault(
    'exhausted',
    diskFull,
    `Not enough disk space on the node: ${purpose} needs ${inMb(neededBytes)} MB, ` +
      `${inMb(Math.max(0, spareBytes))} MB are free above the reserve of ${inMb(reserveBytes)} MB. ` +
      whatToFree,
  )
}

export function tooFewInodes(text: {
  readonly purpose: string
  readonly neededInodes: number
  readonly freeInodes: number
}): Fault {
  const { purpose, neededInodes, freeInodes } = text
  return new Fault(
    'exhausted',
    diskFull,
    `Not enough inodes on the node: ${purpose} needs ${neededInodes}, ${freeInodes} are free. ` +
      whatToFree,
  )
}

export function tooMuchCommitted(committedBytes: number, limitBytes: number): Fault {
  return new Fault(
    'exhausted',
    diskFull,
    `Disk overcommit limit reached: the disks of all sandboxes add up to ${inMb(committedBytes)} MB, ` +
      `${inMb(limitBytes)} MB are allowed. Delete sandboxes, or raise ATOLL_DISK_OVERCOMMIT.`,
  )
}

export function ranOutOfSpace(cause: unknown): Fault {
  return new Fault(
    'exhausted',
    diskFull,
    'Not enough disk space on the node: it ran out while this was under way. Delete sandboxes or snapshots.',
    { cause },
  )
}

/** Free inodes of the data file system below which no sandbox is created. A sandbox takes about ten. */
export const minimumInodes = 1000

/** Names no path: API users read this. */
const whatToFree = 'Delete sandboxes or snapshots, or ask the operator to add disk space.'

function inMb(bytes: number): number {
  return Math.ceil(bytes / mib)
}
