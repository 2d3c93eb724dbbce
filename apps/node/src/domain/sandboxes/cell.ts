import type { Authority, Ingress, NetworkRules } from '@atoll/contracts/network/rules'
import { Fault } from '@atoll/kit/fault'
import type { Setup } from './setup.ts'
import type { Slot } from '../network/slot.ts'
import type { ProcessIdentity } from './process-identity.ts'

/** Template and sizes of a sandbox. Unused cells of one shape are interchangeable. */
export interface Shape {
  readonly templateId: string
  readonly cpuCount: number
  readonly memoryMb: number
  readonly diskSizeMb: number
}

/** Parts that a cell was made of. The cell needs the same parts again whenever it or a copy of it starts. */
export interface CellParts extends Shape {
  readonly runtime: 'gvisor' | 'runc'
  /** Name of the layer below the disk of the cell. */
  readonly layer: string
  /** Name of the folder mounted as `/.atoll`. The folder must outlive the cell. */
  readonly envd: string
  /** Secret that authenticates the node to envd. */
  readonly initToken: string
  /** Absent: the setup of the built-in template. */
  readonly setup?: Setup
}

/**
 * A place on this machine for one sandbox: disk, mounts, control group, network slot and processes, under its own ID. A
 * cell may be made before a sandbox needs it, and has an owner once it is claimed. The node stores this record in the
 * cell's folder; the record is enough to adopt the cell or to remove every trace of it.
 */
export interface CellRecord extends CellParts {
  readonly cellId: string
  readonly phase: Phase
  /** File name of the disk image. */
  readonly disk: string
  /** Absent while the cell is paused. */
  readonly slotNumber?: number
  readonly process?: ProcessIdentity
  /** Release of the runtime that runs the cell or ran it last. Absent: unknown. */
  readonly release?: string
  readonly owner?: Owner
  /** Release of the runtime that wrote the memory of a paused cell. Absent: only files were kept. */
  readonly memory?: string
  /**
   * Generation that was paused, which identifies the kept content: each start raises the generation, and a resume that
   * fails does too, but keeps the content. Absent: the cell runs, or was paused by an old Atoll version.
   */
  readonly keptGeneration?: number
  /**
   * Random ID of the pause. Generations repeat when the control plane is restored from a backup, so contents are the same
   * only if their IDs are. Absent: paused by an old Atoll version.
   */
  readonly keptId?: string
}

/**
 * Cells in phase `making` are never adopted, because the process that made them is dead. `ready` cells have no owner
 * yet. `copying` cells run but may be frozen. A `resuming` cell goes back to `paused` when the resume fails. An `evicted`
 * cell stands for a paused sandbox whose files are in the object store only: its folder has the record and nothing else.
 */
export const phases = [
  'making',
  'ready',
  'running',
  'copying',
  'paused',
  'resuming',
  'evicted',
] as const

export type Phase = (typeof phases)[number]

/** Sandbox that owns a cell, with the settings that must be applied again at every start. */
export interface Owner {
  readonly sandboxId: string
  /** Number of the start that the control plane asked for. Absent in records of old Atoll versions. */
  readonly generation?: number
  readonly envVars: Readonly<Record<string, string>>
  readonly network?: NetworkRules
  /**
   * Certificate authority that the sandbox trusts, or trusted earlier, for its header rules. Kept for the life of the
   * sandbox: running programs do not load a new one.
   */
  readonly authority?: Authority
  /** Stored for the edge. */
  readonly ingress?: Ingress
}

/** Host name of a cell without an owner. */
export const unclaimedHostname = 'sandbox'

/** A cell with running processes. */
export interface Cell {
  readonly record: CellRecord
  readonly slot: Slot
}

export function shapeOf({ templateId, cpuCount, memoryMb, diskSizeMb }: Shape): Shape {
  return { templateId, cpuCount, memoryMb, diskSizeMb }
}

export function cellPartsOf(parts: CellParts): CellParts {
  const { runtime, layer, envd, initToken, setup } = parts
  return { ...shapeOf(parts), runtime, layer, envd, initToken, ...(setup && { setup }) }
}

/** Returns whether a new cell would be made of the same parts. Only then may a pre-warmed cell replace a new one. */
export function hasSameParts(made: Parts, current: Parts): boolean {
  return (['runtime', 'release', 'layer', 'envd'] as const).every(
    (part) => made[part] === current[part],
  )
}

type Parts = Pick<CellRecord, 'runtime' | 'release' | 'layer' | 'envd'>

/**
 * Returns the runtime release that writes the cell's memory: the one that runs the cell, which may no longer be
 * installed.
 */
export function memoryWriter({ release }: CellRecord, present: string): string {
  return release ?? present
}

/** Returns the same key for equal shapes. */
export function shapeKey(shape: Shape): string {
  return [shape.templateId, shape.cpuCount, shape.memoryMb, shape.diskSizeMb].join('-')
}

const idPattern = /^[a-z0-9]{1,63}$/

/** Rejects IDs with characters other than letters and digits: IDs become folder and host names. */
export function checkId(id: string): void {
  if (idPattern.test(id)) return
  throw new Fault('invalid', 'bad_id', 'An ID must have 1 to 63 lower-case letters and digits')
}

export function checkShape(shape: Shape): void {
  if (shape.cpuCount >= 1 && shape.memoryMb >= 128 && shape.diskSizeMb >= 16) return
  throw new Fault(
    'invalid',
    'bad_limits',
    'A sandbox needs at least 1 CPU, 128 MB of memory and 16 MB of disk',
  )
}
