import { totalmem } from 'node:os'
import { createBlankCellMaker } from '../app/pools/blank-cell-maker.ts'
import { createBlankCells } from '../app/pools/blank-cells.ts'
import type { BlankCells } from '../app/pools/blank-cells.ts'
import type { NodeConfig } from '../config.ts'
import { freeMemoryBytes } from '../linux/machine.ts'
import { isCellAlive } from './cell-ports.ts'
import type { CellAccess } from './cell-ports.ts'
import type { CellParts } from './cells.ts'

/** Memory of a blank cell, rounded up. */
const cellBytes = 16 * 1024 ** 2
/** More restores at once would wait for the processor anyway. */
const mostCells = 16
/** Blank cells may take this part of the memory for pre-warmed sandboxes. */
const shareOfPools = 0.25
/** Twice of what the node keeps free: blank cells must not be the reason why a create is refused. */
const spareMemoryBytes = 512 * 1024 ** 2

/** Returns undefined when the runtime has no blank cells. */
export async function openBlankCells(
  { config, slots, log }: CellParts,
  ports: CellAccess,
  findEnvd: (name: string) => Promise<string>,
): Promise<BlankCells | undefined> {
  const { blanks } = ports.runtime
  const limit = Math.min(mostCells, Math.floor((poolBytes(config) * shareOfPools) / cellBytes))
  if (limit === 0 || !blanks || !(await blanks.isSupported())) return undefined
  const maker = createBlankCellMaker({ ports: { ...ports, findEnvd }, slots, blanks })
  return createBlankCells({
    limit,
    ports: {
      ...maker,
      isAlive: isCellAlive,
      hasRoom: async () => (await freeMemoryBytes()) > spareMemoryBytes,
      nowMs: () => performance.now(),
      onError: (err) =>
        log.error(
          { err, event: 'node.blank-cell' },
          'a blank cell could not be made or restored into; a plain restore replaces it',
        ),
    },
  })
}

/** Memory that pre-warmed sandboxes may take. */
export function poolBytes({ ATOLL_POOL_MEMORY_MB: megabytes }: NodeConfig): number {
  return megabytes === undefined ? totalmem() / 10 : megabytes * 1024 * 1024
}
