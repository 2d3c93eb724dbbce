/** Runs one test file in a process of its own, within a time limit, and says how its tests ended. */
import { tallySteps } from './test-events.ts'
import type { TestTally } from './test-events.ts'
import { runTestProcess, success } from './test-process.ts'
import type { ProcessOutcome, TestProcess } from './test-process.ts'

export interface TestFile extends Omit<TestProcess, 'args' | 'progress'> {
  /** Relative to the root. */
  readonly path: string
}

export interface FileOutcome {
  readonly path: string
  /** Number of test functions, and of their cases. */
  readonly passed: number
  readonly passedCases: number
  /** Names of tests, and of what went wrong with the file as a whole. */
  readonly failures: readonly string[]
  readonly seconds: number
  /** Output of the file, without the summary of Node's test runner. */
  readonly output: string
}

export async function runTestFile({ path, ...options }: TestFile): Promise<FileOutcome> {
  const run = await runTestProcess({ ...options, args: [path] })
  const tally = tallySteps(run.steps)
  const { passed, passedCases, failedTests } = tally
  const isAborted = options.signal?.aborted === true
  return {
    ...{ path, passed, passedCases },
    failures: [...failedTests, ...problemsOf(run, tally, isAborted, options.limitMs)],
    seconds: run.seconds,
    output: run.output,
  }
}

function problemsOf(
  { exit, left }: ProcessOutcome,
  tally: TestTally,
  isAborted: boolean,
  limitMs: number,
): string[] {
  const problems: string[] = []
  if (exit === undefined) problems.push(isAborted ? endedWithRun : describeHang(limitMs, tally))
  else if (exit !== success && tally.failedTests.length === 0) problems.push(exit)
  else if (isEmpty(tally)) problems.push(ranNoTest)
  else if (exit === success && tally.unfinishedTests.length > 0)
    problems.push(`${exit} before the end of ${listTests(tally.unfinishedTests)}`)
  return [...problems, ...left]
}

export const endedWithRun = 'ended because the run was ended'
export const ranNoTest = 'ran no test'

export function isEmpty({ passedCases, skipped, failedTests }: TestTally): boolean {
  return passedCases + skipped + failedTests.length === 0
}

export function describeHang(limitMs: number, { unfinishedTests }: TestTally): string {
  const limit = `killed after its limit of ${limitMs / 1000} s`
  if (unfinishedTests.length === 0) {
    return `${limit}: all tests had ended, but a listener, a timer or a child process kept it alive`
  }
  return `${limit}; not ended: ${listTests(unfinishedTests)}`
}

function listTests(names: readonly string[]): string {
  const [shown, hidden] = [names.slice(0, 5), names.slice(5)]
  const more = hidden.length > 0 ? ` and ${hidden.length} more` : ''
  return `${shown.map((name) => JSON.stringify(name)).join(', ')}${more}`
}
