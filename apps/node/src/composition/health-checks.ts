import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import type { Logger } from '@atoll/kit/log'
import { repeat } from '@atoll/kit/repeat'
import { createHangDetector } from '../app/health/hung-sandboxes.ts'
import { createIdleThrottle } from '../app/health/idle-throttle.ts'
import type { IdleThrottle } from '../app/health/idle-throttle.ts'
import { createOomRecovery } from '../app/health/oom-recovery.ts'
import type { Sandboxes } from '../app/lifecycle/sandboxes.ts'
import type { WarmPools } from '../app/pools/warm-pools.ts'
import type { Cell } from '../domain/sandboxes/cell.ts'
import { checksPerSecond } from '../domain/sandboxes/idle-level.ts'
import { isUp } from '../envd/status.ts'
import { killIfAlive } from '../linux/processes/process.ts'
import { idsOf } from './cell-ports.ts'
import type { Host } from './host.ts'

export interface HealthParts {
  readonly host: Host
  readonly sandboxes: Sandboxes
  /** Cells in which build commands run. */
  readonly buildingCells: ReadonlySet<Cell>
  readonly pools: Pick<WarmPools, 'isCrowded'>
  cpuUsedNs(cellId: string): bigint | undefined
  oomKills(cellId: string): number
  readonly log: Logger
}

const idleIntervalMs = 1000 / checksPerSecond
const hangIntervalMs = 1000
/** Limit, because after a restart every sandbox that ever had an OOM kill is frozen and thawed at once. */
const cyclesAtOnce = 2

/** Starts to throttle idle sandboxes, to recover sandboxes that lack memory, and to end sandboxes that hang. */
export function startHealthChecks(
  parts: HealthParts,
): Pick<IdleThrottle, 'isAsleep'> & { close(): Promise<void> } {
  const { log } = parts
  const idleThrottle = createIdleThrottle({
    running: parts.sandboxes.running,
    isCrowded: parts.pools.isCrowded,
    cpuUsedNs: parts.cpuUsedNs,
    runtimes: parts.host.runtimes,
    nowNs: process.hrtime.bigint,
  })
  const stopThrottling = repeat(
    idleIntervalMs,
    async () => idleThrottle.check(),
    (err) =>
      log.error(
        { err, event: 'node.rest' },
        'idle sandboxes could not be throttled; the next check tries again',
      ),
  )
  const onError = (err: unknown) =>
    log.error(
      { err, event: 'node.hang' },
      'the check for hung sandboxes failed for a sandbox; the next check tries again',
    )
  const checkCells = createCellChecks(parts, onError)
  const stopChecks = repeat(hangIntervalMs, async () => checkCells(), onError)
  return {
    isAsleep: idleThrottle.isAsleep,
    close: async () => void (await Promise.all([stopThrottling(), stopChecks()])),
  }
}

/** Returns one pass over all cells at work: recovers cells with OOM kills, ends cells that hang. */
function createCellChecks(parts: HealthParts, onError: (error: unknown) => void): () => void {
  const { host, sandboxes, oomKills, log } = parts
  const running = () => [...sandboxes.running(), ...parts.buildingCells]
  const limit = limitConcurrency(cyclesAtOnce)
  function killHung({ record }: Cell): void {
    log.warn(
      { ...idsOf(record), event: 'node.hang' },
      'a sandbox hangs after an OOM kill and is ended; give it more memory',
    )
    killIfAlive(record.process)
  }
  const hangDetector = createHangDetector({
    running,
    oomKills,
    runtimes: host.runtimes,
    end: killHung,
    onError,
  })
  const oomRecovery = createOomRecovery({
    running,
    oomKills,
    async freezeAndThaw({ record: { cellId, owner, runtime: name } }) {
      const runtime = host.runtimes[name]
      if (!runtime.noticesKillsLate) return
      await limit(async () => {
        if (owner) return sandboxes.freezeAndThaw(owner.sandboxId)
        // Cells that build are never adopted or copied, so freeze and thaw them directly.
        await runtime.freeze(cellId).finally(() => runtime.thaw(cellId))
      })
    },
    answers,
    async killUnlessAnswers(cell) {
      const { owner } = cell.record
      if (owner) return sandboxes.killUnless(answersInTime, owner.sandboxId)
      const isWell = await answersInTime(cell)
      if (!isWell) killHung(cell)
      return isWell
    },
    onError,
  })
  return () => {
    oomRecovery.check()
    hangDetector.check()
  }
}

function answers({ slot }: Cell): Promise<boolean> {
  return isUp(slot.sandboxAddress)
}

/** Retries, because a sandbox that was just thawed after a copy may be slow. */
async function answersInTime(cell: Cell): Promise<boolean> {
  return (await answers(cell)) || (await answers(cell)) || (await answers(cell))
}
