import type { Cell, CellRecord, Shape } from '../../domain/sandboxes/cell.ts'
import { defaultSetup, readyCommandOf } from '../../domain/sandboxes/setup.ts'
import type { CellPlan, Cells, TemplateFiles } from '../lifecycle/cells.ts'

/** Template that a build starts from. */
export interface ParentTemplate {
  readonly templateId: string
  readonly files: TemplateFiles
}

export interface StepCellRequest {
  /** Sizes of the build, with the ID of the new template. */
  readonly shape: Shape
  readonly below: string
  /** Absent: the build starts from an image. */
  readonly parent?: ParentTemplate | undefined
  readonly signal: AbortSignal
}

export interface StepCell {
  readonly cell: Cell
  readonly isBooted: boolean
}

export interface StepCellPorts {
  readonly cells: Pick<Cells, 'erase'>
  readonly records: { update(record: CellRecord): Promise<void> }
  /** Boots a cell when there is room for it. */
  takeCell(plan: CellPlan): Promise<Cell>
  /** Returns a pre-warmed or restored cell of the shape's template. Undefined: there is none. */
  takeWithoutBoot(plan: CellPlan): Promise<Cell | undefined>
  thaw(cellId: string): Promise<void>
}

/**
 * Returns a running cell for one build step, without an identity. A step directly on the files of the parent template
 * gets a cell of that template, whose envd is already in memory. Other steps boot: memory fits only the files that it
 * was made with.
 */
export type TakeStepCell = (request: StepCellRequest) => Promise<StepCell>

export function createTakeStepCell(ports: StepCellPorts): TakeStepCell {
  /** A crash must not leave the cell to the warm pool, since the step changes its files. */
  async function claim(cell: Cell): Promise<void> {
    await ports.records.update({ ...cell.record, phase: 'making' })
    await ports.thaw(cell.record.cellId)
  }

  async function takeOfParent({ shape, below, parent, signal }: StepCellRequest) {
    if (!parent || !isUnusedInMemory(parent, below)) return undefined
    const { templateId } = parent
    const cell = await ports.takeWithoutBoot({ shape: { ...shape, templateId }, signal })
    if (!cell) return undefined
    try {
      await claim(cell)
    } catch {
      // The cell may have died in the pool: boot instead.
      await ports.cells.erase(cell).catch(() => {})
      signal.throwIfAborted()
      return undefined
    }
    if (cell.record.layer === below) return asStepCell(cell, shape)
    // The template was replaced meanwhile.
    await ports.cells.erase(cell)
    return undefined
  }

  return async (request) => {
    const { shape, below, signal } = request
    const cell = await takeOfParent(request)
    if (cell) return { cell, isBooted: false }
    const plan = { shape, files: { layer: below }, signal }
    return { cell: await ports.takeCell(plan), isBooted: true }
  }
}

/**
 * Returns whether cells of the template run nothing but envd. A start or ready command has left processes and files that
 * are no part of the template.
 */
function isUnusedInMemory({ files }: ParentTemplate, below: string): boolean {
  return files.layer === below && readyCommandOf(files.setup ?? defaultSetup) === undefined
}

/** The cell belongs to the new template. Each step brings its own user, directory and variables. */
function asStepCell({ record, slot }: Cell, { templateId }: Shape): Cell {
  const { setup: _setup, ...rest } = record
  return { slot, record: { ...rest, templateId } }
}
