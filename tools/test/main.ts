/**
 * `npm test`: the checks, the tests beside the code, those of the API once more on PostgreSQL, then
 * the system tests; the first failing phase is the last. `npm test -- --unit`, `--postgres`,
 * `--system` and `--check` run one phase, and words run the test files with such a word in their
 * path: `npm test -- --unit edge/src/http`. `--fleet` runs the tests with several nodes, which take too long for
 * every run. Each file has a time limit of its own. Small files share a process.
 * A failed file runs once more, alone, and the summary names it; `--once` takes the first failure as final.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { toBatches } from './batches.ts'
import { tryKill } from './marked-processes.ts'
import { phases } from './phases.ts'
import type { TestPhase } from './phases.ts'
import { repeatFailedFiles } from './repeat-failed-files.ts'
import type { RepeatedFile } from './repeat-failed-files.ts'
import { describeCount, heading, print, printOutcome, showSlowest } from './report.ts'
import { runBatch } from './run-batch.ts'
import { runTestBatch } from './test-batch.ts'
import type { BatchOutcome } from './test-batch.ts'
import { runTestFile } from './test-file.ts'
import type { FileOutcome } from './test-file.ts'

const root = join(import.meta.dirname, '../..')
const {
  values: { once: isFirstFailureFinal = false, ...chosen },
  positionals: words,
} = parseArgs({
  allowPositionals: true,
  options: {
    once: { type: 'boolean' },
    check: { type: 'boolean' },
    unit: { type: 'boolean' },
    postgres: { type: 'boolean' },
    system: { type: 'boolean' },
    fleet: { type: 'boolean' },
  },
})

const limitFactor = readLimitFactor()
/** Loading the modules is most of the work of a small file. */
const compileCache = join(root, 'node_modules/.cache/compiled')
const noticeAfterMs = 60_000
const checkLimitMinutes = 20
const color = process.stdout.isTTY ? { FORCE_COLOR: '1' } : {}
const interruption = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => interruption.abort())
}

const outcomes: FileOutcome[] = []
const repeated: RepeatedFile[] = []
const started = performance.now()
if (isChosen('check') && !(await runChecks())) process.exitCode = 1
for (const phase of phases) {
  if (process.exitCode) break
  if (isChosen(phase.name) && !(await runPhase(phase))) process.exitCode = 1
}
summarize()

/** Returns whether to run a phase. Without flags all run but `fleet`; with words alone, all but `fleet` and the checks. */
function isChosen(...names: ReadonlyArray<keyof typeof chosen>): boolean {
  if (Object.keys(chosen).length > 0) return names.some((name) => chosen[name])
  if (names.includes('fleet')) return false
  return words.length === 0 || !names.includes('check')
}

async function runChecks(): Promise<boolean> {
  print('\n== check')
  const phaseStarted = performance.now()
  const child = spawn(process.execPath, ['tools/check.ts'], {
    cwd: root,
    env: { ...process.env, ...color },
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true, // a process group of its own, so that one signal reaches all checks
  })
  const isOver = AbortSignal.any([
    interruption.signal,
    AbortSignal.timeout(checkLimitMinutes * 60_000 * limitFactor),
  ])
  const kill = () => child.pid && tryKill(-child.pid, 'SIGKILL')
  isOver.addEventListener('abort', kill)
  const [code] = await once(child, 'exit')
  isOver.removeEventListener('abort', kill)
  if (isOver.aborted) print('the checks were ended: they took too long, or the run was ended')
  heading(`check ${code === 0 ? 'passed' : 'FAILED'}`, phaseStarted)
  return code === 0
}

/** Runs all files of the phase, even if some fail. */
async function runPhase(phase: TestPhase): Promise<boolean> {
  const files = findFiles(phase)
  if (files.length === 0) {
    if (words.length > 0) return true
    print(`there are no ${phase.name} tests`)
    return false
  }
  print(`\n== ${phase.name}`)
  const phaseStarted = performance.now()
  const { alone = [], inTurns = [], first = [] } = phase
  const absent = [...alone, ...inTurns, ...first].find((path) => !existsSync(join(root, path)))
  if (absent) throw new Error(`${absent} does not exist; correct the lists in tools/test/phases.ts`)
  await using prepared = await phase.prepare?.()
  const run = (path: string) => runFile(phase, path, prepared?.env)
  const shared: RepeatedFile[] = []
  const runOne = async (paths: readonly string[]) => {
    const batch = await runBatch(paths, {
      runTogether: (together) => runTogether(phase, together, prepared?.env),
      runAlone: run,
    })
    if (batch.fault) shared.push(batch.fault)
    return batch.outcomes
  }
  const beside = files
    .filter((path) => !alone.includes(path) && !inTurns.includes(path))
    .toSorted((a, b) => Number(first.includes(b)) - Number(first.includes(a)))
  const turns = files.filter((path) => inTurns.includes(path))
  const last = files.filter((path) => alone.includes(path))
  const firstRuns = [
    ...(await runFiles({
      atOnce: phase.filesAtOnce,
      batches: toBatches(root, beside, phase.batched ?? []),
      inTurns: turns.map((path) => [path]),
      run: runOne,
    })),
    ...(await runFiles({
      atOnce: 1,
      batches: last.map((path) => [path]),
      inTurns: [],
      run: runOne,
    })),
  ]
  const mayRepeat = !isFirstFailureFinal && !interruption.signal.aborted
  const final = mayRepeat
    ? await repeatFailedFiles(firstRuns, run)
    : { outcomes: [...firstRuns, ...shared.map(asOutcome)], repeated: [] }
  outcomes.push(...final.outcomes)
  repeated.push(...final.repeated, ...(mayRepeat ? shared : []))
  const hasPassed =
    !interruption.signal.aborted && final.outcomes.every(({ failures }) => failures.length === 0)
  showSlowest(firstRuns)
  heading(`${phase.name} ${hasPassed ? 'passed' : 'FAILED'}`, phaseStarted)
  return hasPassed
}

function asOutcome(fault: RepeatedFile): FileOutcome {
  return { ...fault, passed: 0, passedCases: 0, seconds: 0, output: '' }
}

interface FileRun {
  readonly atOnce: number
  /** Files that share a process. */
  readonly batches: ReadonlyArray<readonly string[]>
  readonly inTurns: ReadonlyArray<readonly string[]>
  run(paths: readonly string[]): Promise<readonly FileOutcome[]>
}

async function runFiles({ atOnce, batches, inTurns, run }: FileRun): Promise<FileOutcome[]> {
  const finished: FileOutcome[] = []
  const work = async (queue: Array<readonly string[]>) => {
    for (let paths = queue.shift(); paths; paths = queue.shift()) {
      if (interruption.signal.aborted) return
      finished.push(...(await run(paths)))
    }
  }
  const rest = [...batches]
  // One worker takes the files that run in turns first, and helps the others afterwards.
  const turns = work([...inTurns]).then(() => work(rest))
  await Promise.all([turns, ...Array.from({ length: atOnce - 1 }, () => work(rest))])
  return finished
}

async function runFile(
  phase: TestPhase,
  path: string,
  env: NodeJS.ProcessEnv | undefined,
): Promise<FileOutcome> {
  const options = runOptions(phase, env)
  const outcome = await withNotice(path, () => runTestFile({ ...options, path }))
  printOutcome(outcome)
  return outcome
}

async function runTogether(
  phase: TestPhase,
  paths: readonly string[],
  env: NodeJS.ProcessEnv | undefined,
): Promise<BatchOutcome> {
  const options = runOptions(phase, env)
  const name = `${paths[0]} and ${paths.length - 1} more in one process`
  const outcome = await withNotice(name, () => runTestBatch({ ...options, paths }))
  outcome.files.forEach(printOutcome)
  process.stdout.write(outcome.output)
  outcome.faults.forEach((fault) => print(`FAULT of ${name}, which now run alone: ${fault}`))
  return outcome
}

function runOptions({ fileLimitMinutes }: TestPhase, env: NodeJS.ProcessEnv | undefined) {
  const limitMs = fileLimitMinutes * 60_000 * limitFactor
  return {
    ...{ root, limitMs },
    testLimitMs: Math.round(limitMs * 0.75),
    env: { NODE_COMPILE_CACHE: compileCache, ...color, ...env },
    signal: interruption.signal,
  }
}

async function withNotice<T>(name: string, run: () => Promise<T>): Promise<T> {
  const since = performance.now()
  const notice = setInterval(() => heading(`${name} is running`, since), noticeAfterMs)
  return run().finally(() => clearInterval(notice))
}

function findFiles({ patterns, excluded = [] }: TestPhase): string[] {
  return globSync([...patterns], { cwd: root, exclude: ['**/node_modules/**', ...excluded] })
    .filter((path) => words.length === 0 || words.some((word) => path.includes(word)))
    .toSorted((a, b) => (a < b ? -1 : 1))
}

function readLimitFactor(): number {
  const factor = Number(process.env['ATOLL_TEST_LIMIT_FACTOR'] ?? 1)
  if (factor > 0 && factor <= 100) return factor
  throw new Error('ATOLL_TEST_LIMIT_FACTOR must be a number from 0 to 100')
}

function hasTestPhase(): boolean {
  return phases.some(({ name }) => isChosen(name))
}

function summarize(): void {
  const failed = outcomes.flatMap(({ path, failures }) =>
    failures.map((failure) => `  ${path}: ${failure}`),
  )
  if (outcomes.length === 0 && hasTestPhase() && !process.exitCode) {
    print(`no test file matches ${words.join(' ')}`)
    process.exitCode = 1
  }
  if (repeated.length > 0) {
    print('\npassed only when run again, which is a fault of the test or of Atoll:')
    for (const { path, failures } of repeated)
      failures.forEach((name) => print(`  ${path}: ${name}`))
  }
  if (failed.length > 0) print(`\nfailed:\n${failed.join('\n')}`)
  heading(process.exitCode ? 'FAILED' : 'all passed', started)
  print(`${describeCount(outcomes)} passed, ${failed.length} failed`)
}
