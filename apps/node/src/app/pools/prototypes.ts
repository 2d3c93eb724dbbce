import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import { shapeKey, shapeOf } from '../../domain/sandboxes/cell.ts'
import type { Cell, Shape } from '../../domain/sandboxes/cell.ts'
import type { Snapshot, SnapshotStore } from '../../domain/sandboxes/snapshot.ts'
import type { RunStartCommand, StartCommandOptions } from '../lifecycle/start-command.ts'
import type { CellPlan, Cells, TemplateFiles } from '../lifecycle/cells.ts'

/**
 * One snapshot per shape, taken once envd and the template's start command are ready. New sandboxes restore it, which
 * is faster than a boot. Prototypes may be deleted at any time.
 */
export interface Prototypes {
  /** Returns undefined when there is no usable prototype. */
  find(shape: Shape): Promise<CellPlan['from']>
  /** Makes a prototype if there is none. Returns false when the memory cannot be checkpointed. */
  ensure(shape: Shape, options?: EnsureOptions): Promise<boolean>
  /** Removes a prototype that failed to start. */
  discard(shape: Shape): Promise<void>
  /** Removes prototypes that were not used for a day, except those of built-in templates. They are made again on demand. */
  trim(): Promise<void>
  /** Removes all prototypes of a removed template. */
  discardAll(templateId: string): Promise<void>
  /** Loads the prototypes and removes unusable ones. Returns the shapes that have one. */
  open(): Promise<readonly Shape[]>
}

/** Returns the part of the ID for files and setup. Independent of the order of the variables. */
function nameOf(files: TemplateFiles | undefined): unknown {
  if (!files?.setup) return files?.layer
  const { user, workdir, envVars, startCommand, readyCommand } = files.setup
  const variables = Object.entries(envVars).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return [files.layer, user, workdir, variables, startCommand, readyCommand]
}

const keptMs = 24 * 60 * 60 * 1000

export interface EnsureOptions extends StartCommandOptions {
  /** Files to use instead of those of the shape's template. */
  readonly files?: TemplateFiles
}

export function createPrototypes(parts: {
  readonly cells: Cells
  readonly store: SnapshotStore
  /** Undefined when the runtime cannot checkpoint memory. */
  readonly memoryFormat: string | undefined
  findTemplate(templateId: string): TemplateFiles | undefined
  isBuiltIn(templateId: string): boolean
  readonly envdDir: string
  readonly runStartCommand: RunStartCommand
  readonly save: SaveSnapshot
  nowMs(): number
}): Prototypes {
  const { cells, store, memoryFormat } = parts
  const known = new Map<string, Snapshot>()
  const making = new Map<string, { readonly templateId: string; readonly made: Promise<void> }>()
  const neededAtMs = new Map<string, number>()
  const openedAtMs = parts.nowMs()
  /** IDs of prototypes whose memory cannot be checkpointed. */
  const refused = new Set<string>()
  const idOf = (shape: Shape, files = parts.findTemplate(shape.templateId)) =>
    createHash('sha256')
      .update(
        JSON.stringify([shapeKey(shape), nameOf(files), basename(parts.envdDir), memoryFormat]),
      )
      .digest('hex')
      .slice(0, 32)

  async function make(shape: Shape, options: EnsureOptions = {}): Promise<void> {
    const { files, signal } = options
    const snapshotId = idOf(shape, files)
    const cell = await cells.make({ shape, files, signal })
    try {
      await parts.runStartCommand(cell, options)
      known.set(snapshotId, await parts.save(cell, snapshotId, store))
      neededAtMs.set(snapshotId, parts.nowMs())
    } finally {
      await cells.erase(cell)
    }
  }

  return {
    async find(shape) {
      const snapshot = known.get(idOf(shape))
      if (snapshot) neededAtMs.set(snapshot.snapshotId, parts.nowMs())
      return snapshot && { snapshot, ...store.place(snapshot.snapshotId) }
    },

    async ensure(shape, options) {
      if (memoryFormat === undefined) return false
      const id = idOf(shape, options?.files)
      if (refused.has(id)) return false
      if (known.has(id)) return true
      const { templateId } = shape
      const made = making.get(id)?.made ?? make(shape, options).finally(() => making.delete(id))
      making.set(id, { templateId, made })
      await made.catch((error: unknown) => {
        if (error instanceof Fault && error.kind === 'invalid') refused.add(id)
        throw error
      })
      return true
    },

    async discard(shape) {
      known.delete(idOf(shape))
      await store.remove(idOf(shape))
    },

    async trim() {
      for (const { snapshotId, templateId } of known.values()) {
        const sinceMs = parts.nowMs() - (neededAtMs.get(snapshotId) ?? openedAtMs)
        if (parts.isBuiltIn(templateId) || sinceMs < keptMs) continue
        known.delete(snapshotId)
        neededAtMs.delete(snapshotId)
        await store.remove(snapshotId)
      }
    },

    async discardAll(templateId) {
      const underway = [...making.values()].filter((one) => one.templateId === templateId)
      await Promise.allSettled(underway.map(({ made }) => made))
      for (const snapshot of [...known.values()].filter((one) => one.templateId === templateId)) {
        known.delete(snapshot.snapshotId)
        await store.remove(snapshot.snapshotId)
      }
    },

    async open() {
      await store.sweep()
      // Unreadable prototypes are removed, not quarantined: they hold no user data and are made again.
      for (const { path } of await store.listQuarantined()) await store.remove(basename(path))
      for (const snapshot of await store.list()) {
        if (snapshot.snapshotId === idOf(snapshot)) known.set(snapshot.snapshotId, snapshot)
        else await store.remove(snapshot.snapshotId)
      }
      return [...known.values()].map(shapeOf)
    },
  }
}

/** Snapshots a cell whose envd is ready. Freezes the cell meanwhile. */
export type SaveSnapshot = (
  cell: Cell,
  snapshotId: string,
  store: SnapshotStore,
) => Promise<Snapshot>
