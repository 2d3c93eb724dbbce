import { diskFull } from '@atoll/kit/disk-full'
import { Fault } from '@atoll/kit/fault'

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

/**
 * `roomy`: all disks could fill up. `shared`: disks are limited to their shares. `scarce`: little is left. `full`:
 * nothing is left above the reserve and the guarantees.
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
