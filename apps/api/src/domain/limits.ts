import { Fault } from '@atoll/kit/fault'
import type { Resources } from './template.ts'

/** What a team may use. */
export interface TeamLimits {
  readonly concurrentSandboxes: number
  /** The longest that a sandbox may run, from its start. */
  readonly maxSandboxSeconds: number
  readonly maxCpuCount: number
  readonly maxMemoryMb: number
  readonly maxDiskSizeMb: number
  readonly concurrentBuilds: number
  /** What its paused sandboxes and its snapshots may take on disks, together. */
  readonly keptDiskMb: number
}

/** Those of its limits that differ from the configured ones. */
export type OwnLimits = { readonly [Name in keyof TeamLimits]?: number }

/** Sets what `change` names; null takes a limit back to the configured one. */
export function changeLimits(
  own: OwnLimits,
  change: { readonly [Name in keyof TeamLimits]?: number | null | undefined },
): OwnLimits {
  const merged = Object.entries({ ...own, ...definedIn(change) })
  return Object.fromEntries(merged.filter(([, value]) => typeof value === 'number'))
}

function definedIn(change: object): object {
  return Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined))
}

/** `asker` is what the caller gave. */
export function checkResources(
  resources: Resources,
  limits: TeamLimits,
  asker = 'templateID',
): void {
  const { cpuCount, memoryMb, diskSizeMb } = resources
  const { maxCpuCount, maxMemoryMb, maxDiskSizeMb } = limits
  const over = [
    cpuCount > maxCpuCount && `${cpuCount} CPU cores (limit ${maxCpuCount})`,
    memoryMb > maxMemoryMb && `${memoryMb} MiB of memory (limit ${maxMemoryMb})`,
    diskSizeMb > maxDiskSizeMb && `${diskSizeMb} MiB of disk (limit ${maxDiskSizeMb})`,
  ].filter((text) => text !== false)
  if (over.length === 0) return
  throw new Fault(
    'invalid',
    'team_limit_exceeded',
    `The template is too large for the limits of the team: ${asker} asks for ${over.join(', ')}`,
  )
}

const mebibyte = 1024 * 1024

/** Whether so much more may be kept. */
export function mayKeep({ keptDiskMb }: TeamLimits, keptBytes: number, moreBytes: number): boolean {
  return keptBytes + moreBytes <= keptDiskMb * mebibyte
}

export function tooMuchKept({ keptDiskMb }: TeamLimits, keptBytes: number): Fault {
  return new Fault(
    'exhausted',
    'kept_disk_exceeded',
    `The paused sandboxes and snapshots of the team take ${Math.ceil(keptBytes / mebibyte)} MiB, and may take ${keptDiskMb} MiB: delete some that are not needed`,
  )
}

export function tooManySandboxes({ concurrentSandboxes }: TeamLimits): Fault {
  return new Fault(
    'exhausted',
    'concurrent_sandboxes_exceeded',
    `The team runs ${concurrentSandboxes} sandboxes already, as many as it may at a time: end one that is not needed`,
  )
}
