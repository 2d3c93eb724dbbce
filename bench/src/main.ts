/** `npm run bench [-- --only NAME --rounds N]`: runs the benchmarks, prints tables and writes the numbers to a file. */
import { mkdir, writeFile } from 'node:fs/promises'
import { cpus, loadavg, release } from 'node:os'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { renderTable, toJson } from './report.ts'
import type { ScenarioReport } from './report.ts'
import type { Scenario } from './scenario.ts'
import { commandRoundTrip } from './scenarios/command-round-trip.ts'
import { concurrentCommands } from './scenarios/concurrent-commands.ts'
import { crowd } from './scenarios/crowd.ts'
import { dashboardTable } from './scenarios/dashboard-table.ts'
import { fileTransfer } from './scenarios/file-transfer.ts'
import { agentDay } from './scenarios/agent-day.ts'
import { burst } from './scenarios/burst.ts'
import { coldStart } from './scenarios/cold-start.ts'
import { fleet } from './scenarios/fleet.ts'
import { fleetCreate } from './scenarios/fleet-create.ts'
import { firstResult } from './scenarios/first-result.ts'
import { heldSandbox } from './scenarios/held-sandbox.ts'
import { idleSandbox } from './scenarios/idle-sandbox.ts'
import { listFiles } from './scenarios/list-files.ts'
import { listSandboxes } from './scenarios/list-sandboxes.ts'
import { pauseAndFork } from './scenarios/pause-and-fork.ts'
import { processOutput } from './scenarios/process-output.ts'
import { releaseCost } from './scenarios/release-cost.ts'
import { runCode } from './scenarios/run-code.ts'
import { serverStart } from './scenarios/server-start.ts'
import { teamMetrics } from './scenarios/team-metrics.ts'
import { telemetryCost } from './scenarios/telemetry-cost.ts'
import { warmCreate } from './scenarios/warm-create.ts'
import { openTestBed } from './test-bed.ts'

const scenarios: readonly Scenario[] = [
  warmCreate,
  telemetryCost,
  coldStart,
  serverStart,
  pauseAndFork,
  agentDay,
  burst,
  crowd,
  commandRoundTrip,
  concurrentCommands,
  firstResult,
  runCode,
  processOutput,
  fileTransfer,
  listFiles,
  idleSandbox,
  heldSandbox,
  listSandboxes,
  teamMetrics,
  dashboardTable,
]
/** Run only when they are named: fleets fill the machine, and an earlier release builds its base. */
const largeScenarios: readonly Scenario[] = [fleet, fleetCreate, releaseCost]
const allScenarios = [...scenarios, ...largeScenarios]

const { values } = parseArgs({
  options: { rounds: { type: 'string' }, only: { type: 'string', multiple: true } },
})
const rounds = values.rounds === undefined ? undefined : Number(values.rounds)
const { only } = values
const chosen = only ? allScenarios.filter(({ name }) => only.includes(name)) : scenarios
const unknown = only?.filter((name) => !allScenarios.some((known) => known.name === name)) ?? []
const stopped = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => stopped.abort())
}

if (rounds !== undefined && (!Number.isInteger(rounds) || rounds < 1)) {
  refuse('--rounds must be a whole number of at least 1')
} else if (unknown.length > 0) {
  const names = allScenarios.map(({ name }) => name).join(', ')
  refuse(`Unknown scenario in --only: ${unknown.join(', ')}. Known scenarios: ${names}`)
} else {
  await measure().catch((error: unknown) => {
    // Errors after an interrupt are expected, but a failed cleanup must be reported.
    if (!stopped.signal.aborted || error instanceof SuppressedError) throw error
    process.stderr.write('interrupted\n')
    process.exitCode = 130
  })
}

async function measure(): Promise<void> {
  const { signal } = stopped
  const progress = (text: string) => void process.stderr.write(`${text}\n`)
  const reports: ScenarioReport[] = []
  const loadBefore = loadavg()[0]
  await using testBed = openTestBed(progress)
  for (const scenario of chosen) {
    signal.throwIfAborted()
    progress(scenario.name)
    const context = { rounds: rounds ?? scenario.rounds, signal, progress, testBed }
    for (const report of await scenario.measure(context)) {
      process.stdout.write(`\n${renderTable(report)}`)
      reports.push(report)
    }
  }
  const path = join(import.meta.dirname, '../results/latest.json')
  const [load] = loadavg()
  const machine = { cpus: cpus().length, cpu: cpus()[0]?.model, kernel: release() }
  const results = {
    at: new Date().toISOString(),
    machine: { ...machine, loadBefore, loadAfter: load },
    scenarios: reports.map(toJson),
  }
  await mkdir(join(path, '..'), { recursive: true })
  await writeFile(path, `${JSON.stringify(results, undefined, 2)}\n`)
  process.stdout.write(`\nResults written to ${relative(process.cwd(), path)}\n`)
}

function refuse(message: string): void {
  process.stderr.write(`${message}\n`)
  process.exitCode = 2
}
