import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import { shapeKey, shapeOf } from '../domain/cell.ts'
import type { Cell, Shape } from '../domain/cell.ts'
import type { Snapshot, SnapshotStore } from '../domain/snapshot.ts'
import type { Begin, BeginOptions } from './begin.ts'
import type { CellPlan, Cells, TemplateFiles } from './cells.ts'

/**
 * One snapshot for each shape, taken when envd was ready and what its template begins with was: a new sandbox goes on from there,
 * which is quicker than to boot. They can be thrown away at any time.
 */
export interface Prototypes {
  /** Undefined when there is none, or none is of use. */
  find(shape: Shape): Promise<CellPlan['from']>
  /** Makes one where memory is kept and there is none. False: it is not kept. */
  ensure(shape: Shape, options?: EnsureOptions): Promise<boolean>
  /** One that fails to start is of no use. */
  discard(shape: Shape): Promise<void>
  /** Removes those that nobody has needed for a day; they are made again when somebody does. */
  trim(): Promise<void>
  /** Those of a template that is no more. */
  discardAll(templateId: string): Promise<void>
  /** Those there are, once what is of no use any more has been removed. */
  open(): Promise<readonly Shape[]>
}

/** The same for the same, whatever the order it was written in. */
function nameOf(files: TemplateFiles | undefined): unknown {
  if (!files?.setup) return files?.layer
  const { user, workdir, envVars, startCommand, readyCommand } = files.setup
  const variables = Object.entries(envVars).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return [files.layer, user, workdir, variables, startCommand, readyCommand]
}

const keptMs = 24 * 60 * 60 * 1000

export interface EnsureOptions extends BeginOptions {
  /** In place of those of the template of the shape. */
  readonly files?: TemplateFiles
}

export function createPrototypes(parts: {
  readonly cells: Cells
  readonly store: SnapshotStore
  /** Undefined where the runtime keeps no memory. */
  readonly memoryFormat: string | undefined
  findTemplate(templateId: string): TemplateFiles | undefined
  readonly envdDir: string
  readonly begin: Begin
  readonly save: SaveSnapshot
  nowMs(): number
}): Prototypes {
  const { cells, store, memoryFormat } = parts
  const known = new Map<string, Snapshot>()
  const making = new Map<string, { readonly templateId: string; readonly made: Promise<void> }>()
  const neededAtMs = new Map<string, number>()
  const openedAtMs = parts.nowMs()
  /** Those whose memory cannot be kept. */
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
      await parts.begin(cell, options)
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
        if (templateId === 'base' || sinceMs < keptMs) continue
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
      // A prototype holds nothing of a user, and another one takes its place.
      for (const { path } of await store.listQuarantined()) await store.remove(basename(path))
      for (const snapshot of await store.list()) {
        if (snapshot.snapshotId === idOf(snapshot)) known.set(snapshot.snapshotId, snapshot)
        else await store.remove(snapshot.snapshotId)
      }
      return [...known.values()].map(shapeOf)
    },
  }
}

/** Copies a cell whose envd has been made ready; it stands still meanwhile. */
export type SaveSnapshot = (
  cell: Cell,
  snapshotId: string,
  store: SnapshotStore,
) => Promise<Snapshot>
