import { Fault } from '@atoll/kit/fault'
import type { Resources } from '../template.ts'

export interface TeamLimits {
  readonly concurrentSandboxes: number
  /** Maximum run time since the start. */
  readonly maxSandboxSeconds: number
  readonly maxCpuCount: number
  readonly maxMemoryMb: number
  readonly maxDiskSizeMb: number
  readonly concurrentBuilds: number
  /** Quota for the disk space of all templates, paused sandboxes and snapshots of the team. */
  readonly keptDiskMb: number
}

/** Limits that override the configured defaults. */
export type OwnLimits = { readonly [Name in keyof TeamLimits]?: number }

/** Applies `change`; null resets a limit to the configured default. */
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

/** `asker` names the request field or object in the error message. */
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
    `The template exceeds the limits of the team: ${asker} asks for ${over.join(', ')}`,
  )
}

const mebibyte = 1024 * 1024

/** Checks the disk quota for `moreBytes` in addition to `keptBytes`. */
export function mayKeep({ keptDiskMb }: TeamLimits, keptBytes: number, moreBytes: number): boolean {
  return keptBytes + moreBytes <= keptDiskMb * mebibyte
}

export function tooMuchKept({ keptDiskMb }: TeamLimits, keptBytes: number): Fault {
  return new Fault(
    'exhausted',
    'kept_disk_exceeded',
    `The templates, paused sandboxes and snapshots of the team take ${Math.ceil(keptBytes / mebibyte)} MiB, and its limit is ${keptDiskMb} MiB: delete some that are not needed`,
  )
}

export function tooManySandboxes({ concurrentSandboxes }: TeamLimits): Fault {
  return new Fault(
    'exhausted',
    'concurrent_sandboxes_exceeded',
    `Concurrent sandbox limit of the team reached (${concurrentSandboxes}): kill or pause a sandbox, or ask an operator to raise the limit`,
  )
}
