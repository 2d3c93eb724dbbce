/** Reads the state of the warm pool from the cell records of the node. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { HttpCloud } from '@atoll/system-tests/http-cloud'
import { waitFor } from '@atoll/kit/wait'

export interface CellCounts {
  /** Cells in a pool. */
  readonly ready: number
  /** Cells that are being created. Blank cells are left out: they stay in this phase. */
  readonly inProgress: number
}

export async function countCells(cloud: HttpCloud): Promise<CellCounts> {
  const phases = (await readCells(cloud))
    .filter(({ templateId }) => templateId !== '')
    .map(({ phase }) => phase)
  const count = (wanted: string) => phases.filter((phase) => phase === wanted).length
  return { ready: count('ready'), inProgress: count('making') }
}

/** Returns the IDs of the cells in a pool. */
export async function readyCells(cloud: HttpCloud): Promise<string[]> {
  return (await readCells(cloud))
    .filter(({ phase }) => phase === 'ready')
    .map(({ cellId }) => cellId)
}

/**
 * Waits until the pool has at least `minimum` cells and no longer grows. Filling a pool takes CPU time from the
 * measurement.
 */
export async function waitForFullPool(cloud: HttpCloud, minimum = 2): Promise<void> {
  let last = -1
  await waitFor(
    'the pool to be full',
    async () => {
      const { ready, inProgress } = await countCells(cloud)
      const isFull = inProgress === 0 && ready >= minimum && ready === last
      last = ready
      return isFull
    },
    { timeoutMs: 300_000, intervalMs: pollIntervalMs },
  )
}

/** Waits until the node neither makes nor removes cells, blank ones included. */
export async function waitForQuietNode(cloud: HttpCloud): Promise<void> {
  let last = ''
  let unchanged = 0
  await waitFor(
    'the node to be quiet',
    async () => {
      const cells = (await readCells(cloud)).map(({ cellId, phase }) => `${cellId} ${phase}`)
      const now = cells.toSorted().join()
      unchanged = now === last ? unchanged + 1 : 0
      last = now
      return unchanged >= quietPolls
    },
    { timeoutMs: 300_000, intervalMs: pollIntervalMs },
  )
}

const quietPolls = 3

/** Longer than the pause of the node between two cells. */
const pollIntervalMs = 400

interface StoredCell {
  readonly cellId: string
  readonly phase: string
  /** Empty in blank cells. */
  readonly templateId: string
}

async function readCells({ installation }: HttpCloud): Promise<StoredCell[]> {
  const dir = join(installation.dataDir, 'cells')
  const names = await readdir(dir).catch(() => [])
  const texts = names.map((name) => readFile(join(dir, name, 'cell.json'), 'utf8').catch(() => ''))
  return (await Promise.all(texts)).flatMap((text): StoredCell[] =>
    text === '' ? [] : [JSON.parse(text)],
  )
}
