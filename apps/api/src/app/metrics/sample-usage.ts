import type { Clock } from '@atoll/kit/clock'
import { firstBaseline, cpuPercent, sampleSeconds, windowOf } from '../../domain/metrics.ts'
import type { CpuReading, Reading, UsageSample, UsageStore } from '../../domain/metrics.ts'
import type { SandboxNode } from '../../domain/node.ts'
import { passedMs, waitAfter } from './sample-teams.ts'

const sampleTimeoutMs = 10_000
/** The first reading of a process gives no samples of old sandboxes, so the process before it continues for this long. */
const handoverSeconds = 2 * sampleSeconds

/** Creates the pass that samples the resource usage of sandboxes every 5 seconds. */
export function createUsageSampling(deps: {
  readonly usage: Pick<UsageStore, 'record'>
  readonly node: SandboxNode
  readonly clock: Clock
  /** Milliseconds of each interval that pass before the node is asked. */
  readonly phaseMs?: () => number
  /** Whether this process samples the node. */
  readonly isMine?: () => boolean
}): (signal: AbortSignal) => Promise<number> {
  const { usage, node, clock, phaseMs = () => 0, isMine = () => true } = deps
  let lastMine = -Infinity
  let lastWindow: number | undefined
  let previousReadings: ReadonlyMap<string, CpuReading> = new Map()
  return async (signal) => {
    const now = clock.now()
    const at = windowOf(now)
    if (isMine()) lastMine = at
    if (Math.abs(at - lastMine) > handoverSeconds) {
      previousReadings = new Map()
      return waitAfter(now)
    }
    const earlyMs = at === lastWindow ? 0 : phaseMs() - passedMs(now)
    if (earlyMs > 0) return earlyMs
    if (at !== lastWindow) {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(sampleTimeoutMs)])
      const readings = await node.sample(limit)
      await usage.record(readings.flatMap((reading) => toSamples(previousReadings, reading, at)))
      previousReadings = new Map(readings.map((reading) => [reading.sandboxId, reading]))
      lastWindow = at
    }
    return waitAfter(clock.now())
  }
}

/** Returns no sample for the first reading of an old sandbox: CPU usage is the difference of two readings. */
function toSamples(
  previousReadings: ReadonlyMap<string, CpuReading>,
  reading: Reading,
  at: number,
): UsageSample[] {
  const previous = previousReadings.get(reading.sandboxId) ?? firstBaseline(reading)
  if (!previous) return []
  const { cpuUsedNs: _, readAtNs: __, ageNs: ___, ...usage } = reading
  return [{ ...usage, at, cpuUsedPercent: cpuPercent(previous, reading) }]
}
