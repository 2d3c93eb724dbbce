import { Fault } from '@atoll/kit/fault'
import type { Cell } from '../../domain/sandboxes/cell.ts'
import type { CellPlan, Cells } from '../lifecycle/cells.ts'
import type { RunStartCommand } from '../lifecycle/start-command.ts'
import type { BlankCells } from './blank-cells.ts'
import type { Prototypes } from './prototypes.ts'

export interface CellMakerPorts {
  readonly runStartCommand: RunStartCommand
  /** Memory that the machine could give to new processes. */
  freeMemoryBytes(): Promise<number>
  /** Throws a fault when the host has no disk space for another sandbox. */
  checkDisk(): void
  onError(error: unknown): void
}

export interface MadeCell {
  readonly cell: Cell
  /** Booted, not restored from memory. */
  readonly isBooted: boolean
}

/** Makes cells: restores the prototype of the shape, or boots where there is none. */
export interface CellMaker {
  /** Throws a fault when the host lacks memory or disk space for another cell. */
  checkHost(): Promise<void>
  /** Whether the host can lose this memory and keep its spare memory. */
  hasMemoryFor(bytes: number): Promise<boolean>
  make(plan: CellPlan): Promise<MadeCell>
  /** Runs the start command of a booted cell, and waits until it is ready. A failure erases the cell. */
  start(made: MadeCell, signal?: AbortSignal): Promise<Cell>
}

/** Refuse below this limit: a machine without memory kills arbitrary processes. */
const spareMemoryBytes = 256 * 1024 * 1024

export function createCellMaker(parts: {
  readonly ports: CellMakerPorts
  readonly cells: Cells
  readonly prototypes: Prototypes
  readonly blanks?: Pick<BlankCells, 'giveUp'> | undefined
}): CellMaker {
  const { ports, cells, prototypes, blanks } = parts
  return {
    async checkHost() {
      ports.checkDisk()
      if ((await ports.freeMemoryBytes()) >= spareMemoryBytes) return
      await blanks?.giveUp()
      const free = await ports.freeMemoryBytes()
      if (free < spareMemoryBytes) throw noRoom(notEnoughMemory(free))
    },

    hasMemoryFor: async (bytes) => (await ports.freeMemoryBytes()) - bytes >= spareMemoryBytes,

    async make(plan) {
      const prototype = plan.from || plan.files ? undefined : await prototypes.find(plan.shape)
      if (!prototype) {
        const isBooted = plan.from?.snapshot.memory === undefined
        return { cell: await cells.make(plan), isBooted }
      }
      try {
        return { cell: await cells.make({ ...plan, from: prototype }), isBooted: false }
      } catch (error) {
        // Neither an abort nor a full host says anything about the prototype.
        const isFull = error instanceof Fault && error.kind === 'exhausted'
        if (plan.signal?.aborted || isFull) throw error
        ports.onError(error)
        await prototypes.discard(plan.shape)
        return { cell: await cells.make(plan), isBooted: true }
      }
    },

    async start({ cell, isBooted }, signal) {
      // Restored cells have already run their start command.
      if (!isBooted) return cell
      try {
        await ports.runStartCommand(cell, { signal })
        return cell
      } catch (error) {
        // Rethrow the original error; cleanup errors are secondary.
        await cells.erase(cell).catch(ports.onError)
        throw error
      }
    },
  }
}

function notEnoughMemory(freeBytes: number): string {
  const [free, needed] = [freeBytes, spareMemoryBytes].map((bytes) => Math.floor(bytes / 1024 ** 2))
  return `Not enough memory for another sandbox: ${free} MB are free, ${needed} MB must stay free. Kill or pause a sandbox, or use another node`
}

export function noRoom(message: string): Fault {
  return new Fault('exhausted', 'no_room', message)
}
