import { diskFull } from '@atoll/kit/disk-full'
import { Fault } from '@atoll/kit/fault'
import { createPoolCells } from './pool-cells.ts'
import type { PoolCellParts, PoolCellPorts } from './pool-cells.ts'
import { bytesOfNextCopy } from './pool-set.ts'
import type { Pool } from './pool-set.ts'
import { createPrototypePreparation } from './prototype-preparation.ts'
import type { Prototypes } from './prototypes.ts'

export interface PoolFillerPorts extends PoolCellPorts {
  nowMs(): number
  onError(error: unknown): void
}

/** Fills the pools in the background, one cell at a time, and never while a request waits for a cell. */
export interface PoolFiller {
  /** Starts to fill unless the filler is already at work. */
  nudge(): void
  nudgeAfter(delayMs: number): void
  /** Cancels the prototypes of a removed template. */
  removeTemplate(templateId: string): void
  close(): Promise<void>
}

/** Pause of a pool after a failure. An immediate retry would slow down waiting requests. */
const failurePauseMs = 5_000

export function createPoolFiller(
  parts: PoolCellParts & {
    readonly ports: PoolFillerPorts
    readonly prototypes: Prototypes
    /** Whether requests wait for cells. */
    readonly isBusy: () => boolean
  },
): PoolFiller {
  const { ports, pools, maker, patienceMs } = parts
  const cells = createPoolCells(parts)
  let filling: Promise<void> | undefined
  let isClosed = false
  const preparation = createPrototypePreparation({
    prototypes: parts.prototypes,
    patienceMs,
    onSlowEnd(shape, failure) {
      const pool = pools.find(shape)
      if (failure && pool) pauseAfterFailure(pool, failure.error)
      nudge()
    },
  })
  const neediest = () =>
    pools.neediest(({ shape, snapshot }) => !snapshot && preparation.isSlow(shape))

  function nudge(): void {
    if (filling || isClosed || !neediest()) return
    filling = fill()
      .catch(ports.onError)
      .finally(() => {
        filling = undefined
        // Calls to `nudge` during the fill had no effect.
        if (!parts.isBusy()) nudge()
      })
  }

  function nudgeAfter(delayMs: number): void {
    setTimeout(nudge, delayMs).unref()
  }

  async function fill(): Promise<void> {
    while (!isClosed && !parts.isBusy()) {
      const pool = neediest()
      if (!pool) return
      try {
        if (pool.snapshot && !(await maker.hasMemoryFor(bytesOfNextCopy(pool.snapshot, pool)))) {
          pause(pool)
          continue
        }
        await maker.checkHost()
        if (pool.snapshot) await cells.addCopy(pool, pool.snapshot)
        else if (await preparation.isDoneSoon(pool.shape)) await cells.addCell(pool)
      } catch (error) {
        pauseAfterFailure(pool, error)
      }
    }
  }

  /** Ignores a removed pool: its cancellation is not a failure. */
  function pauseAfterFailure(pool: Pool, error: unknown): void {
    if (isClosed || !pools.has(pool)) return
    // A full disk is already logged elsewhere.
    if (!(error instanceof Fault && error.reason === diskFull)) ports.onError(error)
    pause(pool)
  }

  function pause(pool: Pool): void {
    pool.pausedUntilMs = ports.nowMs() + failurePauseMs
    nudgeAfter(failurePauseMs)
  }

  return {
    nudge,
    nudgeAfter,
    removeTemplate: preparation.removeTemplate,
    async close() {
      isClosed = true
      await preparation.close()
      await filling
    },
  }
}
