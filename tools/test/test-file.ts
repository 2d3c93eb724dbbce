/** Runs one test file in a process of its own, within a time limit, and says how its tests ended. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findMarked, markVariable, tryKill } from './marked-processes.ts'
import type { MarkedProcess } from './marked-processes.ts'
import { tallySteps } from './test-events.ts'
import type { TestTally } from './test-events.ts'

export interface TestFile {
  readonly root: string
  /** Relative to the root. */
  readonly path: string
  readonly limitMs: number
  /** Limit for one test: a hung test fails, and the rest of its file continues. */
  readonly testLimitMs: number
  readonly env?: NodeJS.ProcessEnv
  /** Ends the file early: its process group gets SIGTERM. */
  readonly signal?: AbortSignal
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

const maxOutputChars = 1_000_000
/** Grace period for a test process to stop its servers and remove its files. */
const graceMs = 15_000
const reporter = join(import.meta.dirname, 'test-events.ts')

export async function runTestFile(file: TestFile): Promise<FileOutcome> {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-test-run-'))
  const eventsPath = join(folder, 'events')
  const mark = randomUUID()
  const started = performance.now()
  try {
    const child = start(file, eventsPath, mark)
    const output = collectOutput(child)
    const exited = exitOf(child)
    const exit = await within(exited, file)
    // Read first: a process that gets SIGTERM reports its tests as cancelled.
    const tally = tallySteps(await readFile(eventsPath, 'utf8').catch(() => ''))
    const isHung = exit === undefined
    const installations = findMarked(mark).map(({ dataDir }) => dataDir)
    if (isHung) await end(child, exited)
    const leftProcesses = findMarked(mark)
    for (const { pid } of leftProcesses) tryKill(pid, 'SIGKILL')
    await closed(child)
    const leftData = [...new Set(installations)].filter((path) => path && existsSync(path))
    return {
      path: file.path,
      passed: tally.passed,
      passedCases: tally.passedCases,
      failures: [
        ...tally.failedTests,
        ...problemsOf({ file, tally, exit, leftProcesses, leftData }),
      ],
      seconds: (performance.now() - started) / 1000,
      output: withoutSummary(output()),
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function start(file: TestFile, eventsPath: string, mark: string): ChildProcess {
  const reporters = ['spec', 'stdout', reporter, eventsPath].map((value, index) =>
    index % 2 === 0 ? `--test-reporter=${value}` : `--test-reporter-destination=${value}`,
  )
  const args = [`--test-timeout=${file.testLimitMs}`, ...reporters, file.path]
  return spawn(process.execPath, args, {
    cwd: file.root,
    env: { ...process.env, ...file.env, [markVariable]: mark },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true, // a process group of its own, so that one signal reaches all of it
  })
}

/** Returns undefined past the limit, or when the run is aborted. */
async function within(exited: Promise<string>, file: TestFile): Promise<string | undefined> {
  const over = new AbortController()
  const signal = AbortSignal.any([over.signal, ...(file.signal ? [file.signal] : [])])
  const limit = sleep(file.limitMs, undefined, { signal }).catch(() => undefined)
  try {
    return await Promise.race([exited, limit])
  } finally {
    over.abort()
  }
}

async function end(child: ChildProcess, exited: Promise<string>): Promise<void> {
  if (child.pid === undefined) return
  tryKill(-child.pid, 'SIGTERM')
  const over = new AbortController()
  await Promise.race([
    exited,
    sleep(graceMs, undefined, { signal: over.signal }).catch(() => undefined),
  ])
  over.abort()
  tryKill(-child.pid, 'SIGKILL')
  await exited
}

/** Waits for the output to close, but not for long: a process without the mark may hold the output open. */
async function closed({ stdout, stderr }: ChildProcess): Promise<void> {
  for (const stream of [stdout, stderr]) {
    if (!stream || stream.closed) continue
    const timer = setTimeout(() => stream.destroy(), 2000)
    await once(stream, 'close')
    clearTimeout(timer)
  }
}

function collectOutput({ stdout, stderr }: ChildProcess): () => string {
  let output = ''
  for (const stream of [stdout, stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-maxOutputChars)
    })
  }
  return () => output
}

const success = 'ended with status 0'

async function exitOf(child: ChildProcess): Promise<string> {
  await once(child, 'exit')
  const { exitCode, signalCode } = child
  return exitCode === null ? `ended by ${signalCode}` : `ended with status ${exitCode}`
}

function problemsOf(run: {
  readonly file: TestFile
  readonly tally: TestTally
  readonly exit: string | undefined
  readonly leftProcesses: readonly MarkedProcess[]
  readonly leftData: readonly unknown[]
}): string[] {
  const { file, tally, exit, leftProcesses, leftData } = run
  const problems: string[] = []
  if (exit === undefined && file.signal?.aborted) problems.push('ended because the run was ended')
  else if (exit === undefined) problems.push(describeHang(file.limitMs, tally))
  else if (exit !== success && tally.failedTests.length === 0) problems.push(exit)
  else if (tally.passedCases + tally.skipped + tally.failedTests.length === 0)
    problems.push('ran no test')
  if (leftProcesses.length > 0) {
    const names = leftProcesses.slice(0, 20).map(({ pid, name }) => `${name} (pid ${pid})`)
    problems.push(`left processes running, now killed: ${names.join(', ')}`)
  }
  if (leftData.length > 0) {
    problems.push(
      `left on the host: ${leftData.join(', ')} (remove with: ATOLL_DATA_DIR=<folder> bin/atoll down)`,
    )
  }
  return problems
}

function describeHang(limitMs: number, { unfinishedTests }: TestTally): string {
  const limit = `killed after its limit of ${limitMs / 1000} s`
  if (unfinishedTests.length === 0) {
    return `${limit}: all tests had ended, but a listener, a timer or a child process kept it alive`
  }
  const [shown, hidden] = [unfinishedTests.slice(0, 5), unfinishedTests.slice(5)]
  const more = hidden.length > 0 ? ` and ${hidden.length} more` : ''
  return `${limit}; not ended: ${shown.map((name) => JSON.stringify(name)).join(', ')}${more}`
}

/** Removes the summary of one file; the run prints one of all files. */
function withoutSummary(output: string): string {
  const sums = 'tests|suites|pass|fail|cancelled|skipped|todo|duration_ms'
  // oxlint-disable-next-line no-control-regex -- colours
  return output.replaceAll(new RegExp(`^(\u001b\\[\\d+m)?ℹ (${sums}) .*\n`, 'gm'), '')
}
