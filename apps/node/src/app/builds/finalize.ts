import { Fault } from '@atoll/kit/fault'
import { BuildError } from '../../domain/builds/build-error.ts'
import type { Cell, Shape } from '../../domain/sandboxes/cell.ts'
import type { OnLine } from '../../domain/sandboxes/commands.ts'
import type { Setup } from '../../domain/sandboxes/setup.ts'
import type { CellPlan, Cells, TemplateFiles } from '../lifecycle/cells.ts'
import type { RunStartCommand, StartCommandOptions } from '../lifecycle/start-command.ts'
import { asBuildError, shorten } from './build-errors.ts'
import type { BuildProgress } from './build-progress.ts'

export interface FinalizePorts {
  readonly cells: Pick<Cells, 'erase'>
  /** Boots a cell when there is room for it. */
  takeCell(plan: CellPlan): Promise<Cell>
  readonly runStartCommand: RunStartCommand
  /** Waits for the envd of a cell without an identity. */
  prepare(cell: Cell): Promise<void>
  /**
   * Checkpoints a started cell as the prototype of the shape. Returns false when the runtime cannot checkpoint memory.
   */
  ensurePrototype(shape: Shape, options: PrototypeOptions): Promise<boolean>
  /** Time limit for the ready command. */
  readonly readyLimitMs: number
}

export interface PrototypeOptions extends StartCommandOptions {
  readonly files: TemplateFiles
}

/** Checks that a sandbox of the new template starts, and keeps a prototype where memory can be checkpointed. */
export type Finalize = (
  shape: Shape,
  files: TemplateFiles & { readonly setup: Setup },
  progress: BuildProgress,
) => Promise<void>

/** Limit without prototypes: every new sandbox then runs the start command, and its client waits. */
const longestWithoutPrototypeMs = 45_000

export function createFinalize(ports: FinalizePorts): Finalize {
  /** Returns false when the memory cannot be checkpointed. The template is still usable: its sandboxes boot. */
  async function keepPrototype(
    shape: Shape,
    options: PrototypeOptions & { readonly signal: AbortSignal },
    note: BuildProgress['note'],
  ): Promise<boolean> {
    try {
      return await ports.ensurePrototype(shape, options)
    } catch (error) {
      options.signal.throwIfAborted()
      if (!(error instanceof Fault) || error.kind !== 'invalid') throw error
      const message = `[finalize] memory cannot be kept, so sandboxes of this template boot: ${error.message}`
      await note('finalize', 'warn', message)
      return false
    }
  }

  return async (shape, files, { note, signal }) => {
    const say = (line: string) => note('finalize', 'info', `[finalize] ${line}`)
    const onLine: OnLine = (stream, line) => say(`[${stream}]: ${line}`)
    const { startCommand } = files.setup
    if (startCommand !== undefined) await say(`START ${shorten(startCommand)}`)
    const fail = asBuildError('finalize', signal)
    const { readyLimitMs } = ports
    const options = { files, onLine, signal, readyLimitMs }
    if (await keepPrototype(shape, options, note).catch(failIfNotReady).catch(fail)) return
    const { layer, setup } = files
    const cell = await ports.takeCell({ shape, files: { layer }, signal }).catch(fail)
    try {
      await ports.prepare(cell)
      const started = { ...cell, record: { ...cell.record, setup } }
      const limitMs = Math.min(readyLimitMs, longestWithoutPrototypeMs)
      await ports.runStartCommand(started, { onLine, signal, readyLimitMs: limitMs })
    } catch (error) {
      await failIfNotReady(error).catch(fail)
    } finally {
      await ports.cells.erase(cell).catch(() => {})
    }
  }
}

/** Words the failure for the author of the template. Rethrows other errors. */
async function failIfNotReady(error: unknown): Promise<never> {
  if (!(error instanceof Fault) || error.reason !== 'not_ready') throw error
  const hint = 'Make the program start faster, or use another ready command'
  const message = `The start command failed. ${shorten(error.message)}. ${hint}`
  throw new BuildError('finalize', message, { cause: error })
}
