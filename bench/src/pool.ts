/** What the node has ready, read from the records that it keeps of its cells. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { CloudByHand } from '@atoll/system-tests/cloud-by-hand'
import { waitFor } from '@atoll/kit/wait'

export interface CellCounts {
  /** In a pool, and nobody's. */
  readonly ready: number
  /** On the way to a pool or to somebody. */
  readonly inProgress: number
}

export async function countCells(cloud: CloudByHand): Promise<CellCounts> {
  const phases = (await readCells(cloud)).map(({ phase }) => phase)
  const count = (wanted: string) => phases.filter((phase) => phase === wanted).length
  return { ready: count('ready'), inProgress: count('making') }
}

/** The ids of those in a pool. */
export async function readyCells(cloud: CloudByHand): Promise<string[]> {
  return (await readCells(cloud))
    .filter(({ phase }) => phase === 'ready')
    .map(({ cellId }) => cellId)
}

/**
 * Waits until the pool has at minimum `minimum` and grows no more. Whoever takes one from it does so again only when it is
 * at rest: a pool that is being filled takes a processor from whatever is measured.
 */
export async function waitForFullPool(cloud: CloudByHand, minimum = 2): Promise<void> {
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

/** Longer than the node waits between two that it makes. */
const pollIntervalMs = 400

interface StoredCell {
  readonly cellId: string
  readonly phase: string
}

async function readCells({ installation }: CloudByHand): Promise<StoredCell[]> {
  const dir = join(installation.dataDir, 'cells')
  const names = await readdir(dir).catch(() => [])
  const texts = names.map((name) => readFile(join(dir, name, 'cell.json'), 'utf8').catch(() => ''))
  return (await Promise.all(texts)).flatMap((text): StoredCell[] =>
    text === '' ? [] : [JSON.parse(text)],
  )
}
