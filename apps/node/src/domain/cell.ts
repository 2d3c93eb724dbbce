import { Fault } from '@atoll/kit/fault'
import type { Authority, NetworkRules } from './network-rules.ts'
import type { ProcessIdentity } from './sandbox.ts'
import type { Setup } from './setup.ts'
import type { Slot } from './slot.ts'

/** How much of the machine, and which files: sandboxes of one shape can stand in for each other until they are used. */
export interface Shape {
  readonly templateId: string
  readonly cpuCount: number
  readonly memoryMb: number
  readonly diskSizeMb: number
}

/** What a cell was made of, and needs again whenever it or a copy of it starts. */
export interface Makings extends Shape {
  readonly runtime: 'gvisor' | 'runc'
  /** The layer below its disk, by name. */
  readonly layer: string
  /** The folder that is its `/.atoll`, by name: it must not go before the cell does. */
  readonly envd: string
  /** The secret that its envd knows the node by. */
  readonly initToken: string
  /** Absent: as in the built-in template. */
  readonly setup?: Setup
}

/**
 * A place on this machine for one sandbox: disk, mounts, control group, network slot, processes, all under an id of its
 * own. It may be made before anybody wants it; from its claim on it has an owner. This is what the node keeps in the
 * cell's folder: enough to adopt it, or to remove every trace of it.
 */
export interface CellRecord extends Makings {
  readonly cellId: string
  readonly phase: Phase
  /** The image of its disk, by name. */
  readonly disk: string
  /** Absent while it is paused. */
  readonly slotNumber?: number
  readonly process?: ProcessIdentity
  /** Which one of its runtime runs it, or did so last. Absent: nobody knows any more. */
  readonly release?: string
  readonly owner?: Owner
  /** Of a paused one: which release of its runtime wrote its memory. Absent: files alone were kept. */
  readonly memory?: string
}

/**
 * `making` is never adopted: whoever was making it is dead. `ready` is nobody's yet. `copying` runs, but may stand
 * still. `resuming` becomes `paused` again when it is not brought to its end.
 */
export const phases = ['making', 'ready', 'running', 'copying', 'paused', 'resuming'] as const

export type Phase = (typeof phases)[number]

/** Whose it is, and what has to be said again when it starts anew. */
export interface Owner {
  readonly sandboxId: string
  readonly envVars: Readonly<Record<string, string>>
  readonly network?: NetworkRules
  /** Whom it trusts for the sake of its rules, or did so before. Programs that know it do not learn another. */
  readonly authority?: Authority
  readonly ingress?: Ingress
}

/** How requests from outside reach it: kept for the edge. */
export interface Ingress {
  readonly trafficAccessToken?: string
  readonly maskRequestHost?: string
  readonly httpsPorts: readonly number[]
}

/** The host name of a cell that is nobody's yet. */
export const neutralName = 'sandbox'

/** One with processes. */
export interface Cell {
  readonly record: CellRecord
  readonly slot: Slot
}

export function shapeOf({ templateId, cpuCount, memoryMb, diskSizeMb }: Shape): Shape {
  return { templateId, cpuCount, memoryMb, diskSizeMb }
}

export function makingsOf(makings: Makings): Makings {
  const { runtime, layer, envd, initToken, setup } = makings
  return { ...shapeOf(makings), runtime, layer, envd, initToken, ...(setup && { setup }) }
}

/** Whether a new cell would be made of the same: only then may one that was made before stand in for it. */
export function isMadeOf(made: Parts, current: Parts): boolean {
  return (['runtime', 'release', 'layer', 'envd'] as const).every(
    (part) => made[part] === current[part],
  )
}

type Parts = Pick<CellRecord, 'runtime' | 'release' | 'layer' | 'envd'>

/** What writes the memory of a cell is what runs it: perhaps a release that this machine has no more. */
export function writerOf({ release }: CellRecord, present: string): string {
  return release ?? present
}

/** The same for all of one shape. */
export function shapeKey(shape: Shape): string {
  return [shape.templateId, shape.cpuCount, shape.memoryMb, shape.diskSizeMb].join('-')
}

const idPattern = /^[a-z0-9]{1,63}$/

/** Ids become folders and host names: nothing but letters and digits may be in them. */
export function checkId(id: string): void {
  if (idPattern.test(id)) return
  throw new Fault('invalid', 'bad_id', 'Ids must be lower-case letters and digits')
}

export function checkShape(shape: Shape): void {
  if (shape.cpuCount >= 1 && shape.memoryMb >= 128 && shape.diskSizeMb >= 16) return
  throw new Fault(
    'invalid',
    'bad_limits',
    'A sandbox needs at least 1 CPU, 128 MB of memory and 16 MB of disk',
  )
}
