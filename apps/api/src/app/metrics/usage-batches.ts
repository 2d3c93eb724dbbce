import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { UsageSample, UsageStore } from '../../domain/metrics.ts'

type Record = UsageStore['record']

/** Short against the interval of samples, and long enough to collect those of many nodes. */
const collectMs = 250

interface Batch {
  readonly samples: UsageSample[]
  readonly written: Promise<void>
}

/**
 * Writes the samples that several nodes answer within a moment together: a transaction for each node of a large fleet would
 * keep the store busy. `isAlone` says whether there is nothing to collect.
 */
export function createUsageBatches(record: Record, isAlone: () => boolean): Record {
  let collecting: Batch | undefined

  const write = async (samples: readonly UsageSample[]): Promise<void> => {
    await sleep(collectMs)
    collecting = undefined
    await record(samples)
  }
  const beginBatch = (): Batch => {
    const samples: UsageSample[] = []
    return { samples, written: write(samples) }
  }
  return async (samples) => {
    if (samples.length === 0) return
    if (isAlone()) return record(samples)
    collecting ??= beginBatch()
    const { samples: collected, written } = collecting
    for (const sample of samples) collected.push(sample)
    try {
      await written
    } catch (error) {
      if (Fault.from(error).kind === 'unavailable') throw error
      // A sample that the store refuses must not cost the samples of other nodes.
      await record(samples)
    }
  }
}
