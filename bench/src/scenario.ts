import type { RuntimeName } from './baselines.ts'
import { rotate, summarize } from './measure.ts'
import type { Row, ScenarioReport } from './report.ts'
import type { TestBed } from './test-bed.ts'

export interface Scenario {
  readonly name: string
  /** Default number of rounds. Scenarios that move gigabytes need fewer than quick ones. */
  readonly rounds: number
  measure(context: ScenarioContext): Promise<readonly ScenarioReport[]>
}

export interface ScenarioContext {
  readonly rounds: number
  readonly signal: AbortSignal
  readonly progress: (text: string) => void
  readonly testBed: TestBed
}

export const runtimes = ['gvisor', 'runc'] as const satisfies readonly RuntimeName[]

/** The command of each runtime, which is the baseline for Atoll's sandboxes. */
export const programs = { gvisor: 'runsc', runc: 'runc' } as const

/** Measured values by row name. */
export interface Samples {
  record(name: string, value: number): void
  row(name: string, baseline?: string): Row
}

/**
 * Runs every measurement once per round, and starts each round with the next one. A warm-up round fills caches and is
 * not counted; long scenarios need none.
 */
export async function interleave(
  { rounds, signal, progress }: ScenarioContext,
  measurements: readonly ((samples: Samples) => Promise<void>)[],
  { warmUp = true } = {},
): Promise<Samples> {
  let samples = collectSamples()
  for (let round = warmUp ? 0 : 1; round <= rounds; round += 1) {
    progress(round === 0 ? 'warming up' : `round ${round} of ${rounds}`)
    if (round === 1) samples = collectSamples()
    for (const measurement of rotate(measurements, round)) {
      signal.throwIfAborted()
      await measurement(samples)
    }
  }
  return samples
}

export function collectSamples(): Samples {
  const values = new Map<string, number[]>()
  return {
    record(name, value) {
      values.set(name, [...(values.get(name) ?? []), value])
    },
    row: (name, baseline) => ({
      name,
      summary: summarize(values.get(name) ?? []),
      ...(baseline !== undefined && { baseline }),
    }),
  }
}

/** Returns the duration of `work` in milliseconds. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}
