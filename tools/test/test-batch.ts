/**
 * Runs several test files in one process, one after the other: loading the modules takes longer than most tests. A file
 * gets an outcome only if the process leaves no doubt about it. The caller runs the other files again, each alone.
 */
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { splitByFile, tallySteps } from './test-events.ts'
import type { FileSteps } from './test-events.ts'
import { describeHang, endedWithRun, isEmpty, ranNoTest } from './test-file.ts'
import type { FileOutcome } from './test-file.ts'
import { runTestProcess, success } from './test-process.ts'
import type { ProcessOutcome, TestProcess } from './test-process.ts'

export interface TestBatch extends Omit<TestProcess, 'args' | 'progress'> {
  /** Relative to the root. Each has the time limit for itself. */
  readonly paths: readonly string[]
}

export interface BatchOutcome {
  readonly files: readonly FileOutcome[]
  /** Files that did not run, or that may have caused a fault or the exit status of the process. */
  readonly undecided: readonly string[]
  /** Faults of the process, of which no file can be named as the cause. */
  readonly faults: readonly string[]
  readonly output: string
}

const program = join(import.meta.dirname, 'batch-process.ts')

export async function runTestBatch({ paths, ...options }: TestBatch): Promise<BatchOutcome> {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-test-batch-'))
  const begunPath = join(folder, 'begun')
  const readBegun = () => read(begunPath)
  try {
    const run = await runTestProcess({
      ...options,
      args: [program, begunPath, ...paths],
      progress: readBegun,
    })
    const steps = splitByFile(run.steps)
    const ended = paths.filter((path) => steps.get(path)?.hasEnded)
    const files = ended.map((path) => toOutcome(path, steps.get(path)))
    const { output } = run
    if (options.signal?.aborted) {
      const others = paths.filter((path) => !ended.includes(path))
      const aborted = others.map((path) => toOutcome(path, steps.get(path), [endedWithRun]))
      return { files: [...files, ...aborted], undecided: [], faults: [], output }
    }
    const faults = faultsOf(run, files.length === paths.length ? files : undefined)
    if (faults.length > 0) return { files: [], undecided: paths, faults, output }
    // Any file may have caused the exit status, even if another file has a failed test.
    const decided = run.exit === success ? files : files.filter(hasFailed)
    const running = readBegun().split('\n').at(-2)
    if (running && !ended.includes(running)) {
      const tally = tallySteps(steps.get(running)?.steps ?? [])
      const reason = run.exit ?? describeHang(options.limitMs, tally)
      decided.push(toOutcome(running, steps.get(running), [reason]))
    }
    const undecided = paths.filter((path) => !decided.some((file) => file.path === path))
    return { files: decided, undecided, faults, output }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** `files` is undefined if the process ended before its last file. */
function faultsOf({ exit, left }: ProcessOutcome, files: readonly FileOutcome[] | undefined) {
  if (left.length > 0 || !files) return left
  if (exit === undefined) return ['all tests had ended, but the process did not']
  return exit === success || files.some(hasFailed) ? [] : [exit]
}

function hasFailed({ failures }: FileOutcome): boolean {
  return failures.length > 0
}

function toOutcome(
  path: string,
  found: FileSteps | undefined,
  problems: readonly string[] = [],
): FileOutcome {
  const tally = tallySteps(found?.steps ?? [])
  const { passed, passedCases, failedTests } = tally
  const isNotRun = problems.length === 0 && isEmpty(tally)
  return {
    ...{ path, passed, passedCases },
    failures: [...failedTests, ...problems, ...(isNotRun ? [ranNoTest] : [])],
    seconds: (found?.durationMs ?? 0) / 1000,
    output: '',
  }
}

/** Returns an empty string before the first file. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
