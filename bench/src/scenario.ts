import type { RuntimeName } from './baselines.ts'
import { rotate, summarize } from './measure.ts'
import type { Row, ScenarioReport } from './report.ts'
import type { TestBed } from './test-bed.ts'

/** One promise, measured. */
export interface Scenario {
  readonly name: string
  /** Rounds when nobody asks for a number: what moves gigabytes needs fewer than what takes milliseconds. */
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

/** The runtime's own program, which is what a sandbox of Atoll is compared with. */
export const programs = { gvisor: 'runsc', runc: 'runc' } as const

/** What was measured, by the name of its row. */
export interface Samples {
  record(name: string, value: number): void
  row(name: string, baseline?: string): Row
}

/**
 * Each round does every measurement once, beginning with another one each time. One round before them fills caches
 * that a machine in use has filled, and does not count; what takes long enough needs none.
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

/** Milliseconds that `work` takes. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}
