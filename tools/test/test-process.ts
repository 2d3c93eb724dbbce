/** Runs test files in one process, within a time limit, and finds what they left behind. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { memoryFolder, memoryFolderVariable } from '@atoll/kit/testing/memory-folder'
import { findMarked, markVariable, tryKill } from './marked-processes.ts'
import type { MarkedProcess } from './marked-processes.ts'
import { parseSteps } from './test-events.ts'
import type { TestStep } from './test-events.ts'

export interface TestProcess {
  readonly root: string
  /** Program and its arguments. */
  readonly args: readonly string[]
  readonly limitMs: number
  /** Limit for one test: a hung test fails, and the rest of its file continues. */
  readonly testLimitMs: number
  readonly env?: NodeJS.ProcessEnv | undefined
  /** Ends the process early: its process group gets SIGTERM. */
  readonly signal?: AbortSignal | undefined
  /** Returns how far the process has got. The time limit starts again with each new value. */
  readonly progress?: () => string
}

export interface ProcessOutcome {
  /** Undefined past the limit, or when the run was aborted. */
  readonly exit: string | undefined
  readonly steps: readonly TestStep[]
  /** Processes and data that the tests left on the host. */
  readonly left: readonly string[]
  readonly seconds: number
  /** Without the summary of Node's test runner. */
  readonly output: string
}

export const success = 'ended with status 0'

const maxOutputChars = 1_000_000
/** Grace period for a test process to stop its servers and remove its files. */
const graceMs = 15_000
const reporter = join(import.meta.dirname, 'test-events.ts')

export async function runTestProcess(tests: TestProcess): Promise<ProcessOutcome> {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-test-run-'))
  const inMemory = await mkdtemp(join(memoryFolder(), 'atoll-test-run-'))
  const eventsPath = join(folder, 'events')
  const mark = randomUUID()
  const started = performance.now()
  try {
    const child = start(tests, eventsPath, {
      [markVariable]: mark,
      [memoryFolderVariable]: inMemory,
    })
    const output = collectOutput(child)
    const exited = exitOf(child)
    const exit = await within(exited, tests)
    // Read first: a process that gets SIGTERM reports its tests as cancelled.
    const steps = parseSteps(await readFile(eventsPath, 'utf8').catch(() => ''))
    const installations = findMarked(mark).map(({ dataDir }) => dataDir)
    if (exit === undefined) await end(child, exited)
    const leftProcesses = findMarked(mark)
    for (const { pid } of leftProcesses) tryKill(pid, 'SIGKILL')
    await closed(child)
    const leftData = [...new Set(installations)].filter((path) => path && existsSync(path))
    return {
      ...{ exit, steps },
      left: describeLeft(leftProcesses, leftData),
      seconds: (performance.now() - started) / 1000,
      output: withoutSummary(output()),
    }
  } finally {
    // A killed process leaves its stores.
    for (const path of [folder, inMemory]) await rm(path, { recursive: true, force: true })
  }
}

function start(tests: TestProcess, eventsPath: string, variables: NodeJS.ProcessEnv): ChildProcess {
  const reporters = ['spec', 'stdout', reporter, eventsPath].map((value, index) =>
    index % 2 === 0 ? `--test-reporter=${value}` : `--test-reporter-destination=${value}`,
  )
  const args = [`--test-timeout=${tests.testLimitMs}`, ...reporters, ...tests.args]
  return spawn(process.execPath, args, {
    cwd: tests.root,
    env: { ...process.env, ...tests.env, ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true, // a process group of its own, so that one signal reaches all of it
  })
}

/** Returns undefined past the limit, or when the run is aborted. */
async function within(
  exited: Promise<string>,
  { limitMs, signal, progress = () => '' }: TestProcess,
): Promise<string | undefined> {
  const over = new AbortController()
  const ended = AbortSignal.any([over.signal, ...(signal ? [signal] : [])])
  const watch = async (): Promise<undefined> => {
    let [last, since] = [progress(), performance.now()]
    for (;;) {
      const leftMs = since + limitMs - performance.now()
      if (leftMs <= 0) return
      await sleep(Math.min(leftMs, 1000), undefined, { signal: ended })
      const current = progress()
      if (current !== last) [last, since] = [current, performance.now()]
    }
  }
  try {
    return await Promise.race([exited, watch().catch(() => undefined)])
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

async function exitOf(child: ChildProcess): Promise<string> {
  await once(child, 'exit')
  const { exitCode, signalCode } = child
  return exitCode === null ? `ended by ${signalCode}` : `ended with status ${exitCode}`
}

function describeLeft(processes: readonly MarkedProcess[], data: readonly unknown[]): string[] {
  const left: string[] = []
  if (processes.length > 0) {
    const names = processes.slice(0, 20).map(({ pid, name }) => `${name} (pid ${pid})`)
    left.push(`left processes running, now killed: ${names.join(', ')}`)
  }
  if (data.length > 0) {
    left.push(
      `left on the host: ${data.join(', ')} (remove with: ATOLL_DATA_DIR=<folder> bin/atoll down)`,
    )
  }
  return left
}

/** Removes the summary of one process; the run prints one of all files. */
function withoutSummary(output: string): string {
  const sums = 'tests|suites|pass|fail|cancelled|skipped|todo|duration_ms'
  // oxlint-disable-next-line no-control-regex -- colours
  return output.replaceAll(new RegExp(`^(\u001b\\[\\d+m)?ℹ (${sums}) .*\n`, 'gm'), '')
}
