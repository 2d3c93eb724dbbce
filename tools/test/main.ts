/**
 * `npm test`: the checks, the tests beside the code, those of the API once more on PostgreSQL, then
 * the system tests; the first failing phase is the last. `npm test -- --unit`, `--postgres`,
 * `--system` and `--check` run one phase, and words run the test files with such a word in their
 * path: `npm test -- --unit edge/src/http`. `--fleet` runs the tests with several nodes, which take too long for
 * every run. Each file has a process and a time limit of its own.
 * A failed file runs once more, alone, and the summary names it; `--once` takes the first failure as final.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { memoryFolder } from '@atoll/kit/testing/memory-folder'
import { startPostgres } from '../postgres.ts'
import { repeatFailedFiles } from './repeat-failed-files.ts'
import type { RepeatedFile } from './repeat-failed-files.ts'
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

interface TestPhase {
  readonly name: 'unit' | 'postgres' | 'system' | 'fleet'
  readonly patterns: readonly string[]
  readonly excluded?: readonly string[]
  readonly filesAtOnce: number
  /** Files that need the machine for themselves: they fill its disk or its descriptors, or compare speeds. */
  readonly alone?: readonly string[]
  /** Files that run beside others, but not beside each other. */
  readonly inTurns?: readonly string[]
  readonly fileLimitMinutes: number
  readonly prepare?: () => Promise<{ readonly env: NodeJS.ProcessEnv } & AsyncDisposable>
}

const phases: readonly TestPhase[] = [
  {
    name: 'unit',
    patterns: [
      'apps/*/src/**/*.test.ts',
      'apps/*/guest/*.test.ts',
      'packages/*/src/**/*.test.ts',
      'tools/**/*.test.ts',
      'bench/src/**/*.test.ts',
    ],
    filesAtOnce: 2,
    fileLimitMinutes: 10,
  },
  {
    name: 'postgres',
    patterns: ['apps/api/src/component-tests/**/*.test.ts', 'apps/api/src/db/**/*.test.ts'],
    // Requests that are refused or answered before they reach the store.
    excluded: [
      'apps/api/src/component-tests/http/**',
      'apps/api/src/component-tests/teams/auth.test.ts',
      'apps/api/src/component-tests/network/egress-refusals.test.ts',
      'apps/api/src/component-tests/builds/{build-files,dockerfile-builds,template-requests}.test.ts',
    ],
    filesAtOnce: 2,
    fileLimitMinutes: 10,
    prepare: preparePostgres,
  },
  {
    name: 'system',
    patterns: ['tests/system/**/*.test.ts', 'tests/ecosystem/**/*.test.ts'],
    // Need several nodes or Ceph.
    excluded: ['tests/system/fleet/rig/**', 'tests/system/fleet/object*.test.ts'],
    // System tests mostly wait for processes.
    filesAtOnce: 3,
    alone: [
      'administration/first-start',
      'administration/metrics',
      'files/full-disk',
      'recovery/power-failure',
      'security/flood',
    ].map(systemTest),
    // All of these route the same addresses to a network outside the host.
    inTurns: [
      'lifecycle/pause-connections',
      'network/egress',
      'network/egress-names',
      'network/header-rules',
      'network/network',
      'security/encryption',
    ].map(systemTest),
    fileLimitMinutes: 30,
  },
  {
    name: 'fleet',
    patterns: ['tests/system/fleet/rig/**/*.test.ts', 'tests/system/fleet/object*.test.ts'],
    // Each file starts several nodes or a Ceph.
    filesAtOnce: 1,
    fileLimitMinutes: 60,
  },
]

const limitFactor = readLimitFactor()
/** Each file has a process of its own, and loading the modules is most of its work. */
const compileCache = join(root, 'node_modules/.cache/compiled')
const noticeAfterMs = 60_000
const slowestShown = 10
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
  })
  const [code] = await once(child, 'exit')
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
  const { alone = [], inTurns = [] } = phase
  const absent = [...alone, ...inTurns].find((path) => !existsSync(join(root, path)))
  if (absent) throw new Error(`${absent} does not exist; correct the lists in tools/test/main.ts`)
  await using prepared = await phase.prepare?.()
  const run = (path: string) => runFile(phase, path, prepared?.env)
  const firstRuns = [
    ...(await runFiles(
      files.filter((path) => !alone.includes(path)),
      { atOnce: phase.filesAtOnce, inTurns, run },
    )),
    ...(await runFiles(
      files.filter((path) => alone.includes(path)),
      { atOnce: 1, inTurns, run },
    )),
  ]
  const mayRepeat = !isFirstFailureFinal && !interruption.signal.aborted
  const final = mayRepeat
    ? await repeatFailedFiles(firstRuns, run)
    : { outcomes: firstRuns, repeated: [] }
  outcomes.push(...final.outcomes)
  repeated.push(...final.repeated)
  const hasPassed =
    !interruption.signal.aborted && final.outcomes.every(({ failures }) => failures.length === 0)
  showSlowest(firstRuns)
  heading(`${phase.name} ${hasPassed ? 'passed' : 'FAILED'}`, phaseStarted)
  return hasPassed
}

interface FileRun {
  readonly atOnce: number
  readonly inTurns: readonly string[]
  run(path: string): Promise<FileOutcome>
}

async function runFiles(
  paths: readonly string[],
  { atOnce, inTurns, run }: FileRun,
): Promise<FileOutcome[]> {
  const finished: FileOutcome[] = []
  const work = async (queue: string[]) => {
    for (let path = queue.shift(); path; path = queue.shift()) {
      if (interruption.signal.aborted) return
      finished.push(await run(path))
    }
  }
  const rest = paths.filter((path) => !inTurns.includes(path))
  // One worker takes the files that run in turns first, and helps the others afterwards.
  const turns = work(paths.filter((path) => inTurns.includes(path))).then(() => work(rest))
  await Promise.all([turns, ...Array.from({ length: atOnce - 1 }, () => work(rest))])
  return finished
}

function systemTest(name: string): string {
  return `tests/system/${name}.test.ts`
}

async function runFile(
  phase: TestPhase,
  path: string,
  env: NodeJS.ProcessEnv = {},
): Promise<FileOutcome> {
  const fileStarted = performance.now()
  const notice = setInterval(() => heading(`${path} is running`, fileStarted), noticeAfterMs)
  const limitMs = phase.fileLimitMinutes * 60_000 * limitFactor
  const outcome = await runTestFile({
    root,
    path,
    limitMs,
    testLimitMs: Math.round(limitMs * 0.75),
    env: { NODE_COMPILE_CACHE: compileCache, ...color, ...env },
    signal: interruption.signal,
  }).finally(() => clearInterval(notice))
  const { failures, output } = outcome
  const verdict = failures.length > 0 ? 'FAILED' : `ok, ${describeCount([outcome])}`
  print(`-- ${path}: ${verdict} (${seconds(outcome)})`)
  process.stdout.write(output)
  if (failures.length > 0) failures.forEach((failure) => print(`FAILED ${path}: ${failure}`))
  return outcome
}

/** One server for all test files; each test has a database of its own. */
async function preparePostgres() {
  const server = await startPostgres(
    { min_wal_size: '32MB', max_wal_size: '128MB' },
    memoryFolder(),
  )
  return {
    env: { ATOLL_TEST_POSTGRES: server.url },
    [Symbol.asyncDispose]: () => server.close(),
  }
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

function showSlowest(finished: readonly FileOutcome[]): void {
  if (finished.length <= slowestShown) return
  print('\nslowest files:')
  finished
    .toSorted((a, b) => b.seconds - a.seconds)
    .slice(0, slowestShown)
    .forEach((outcome) => print(`${seconds(outcome).padStart(9)}  ${outcome.path}`))
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

/** Counts test functions first: the number of rows in their tables says little. */
function describeCount(counted: readonly FileOutcome[]): string {
  const functions = counted.reduce((sum, { passed }) => sum + passed, 0)
  const cases = counted.reduce((sum, { passedCases }) => sum + passedCases, 0)
  return cases > functions ? `${functions} tests with ${cases} cases` : `${functions} tests`
}

function heading(text: string, since: number): void {
  print(`== ${text} (${((performance.now() - since) / 1000).toFixed(1)} s)`)
}

function seconds(outcome: FileOutcome): string {
  return `${outcome.seconds.toFixed(1)} s`
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
