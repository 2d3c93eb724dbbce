/** `npm run bench [-- --rounds N]`: measures the promises, prints a table, keeps the numbers in a file. */
import { mkdir, writeFile } from 'node:fs/promises'
import { cpus, release } from 'node:os'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { renderTable, toJson } from './report.ts'
import { measureFirstByte } from './scenarios/first-byte.ts'

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '10' } } })
const rounds = Number(values.rounds)
const stopped = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => stopped.abort())
}

if (!Number.isInteger(rounds) || rounds < 1) {
  process.stderr.write('--rounds must be a whole number from 1 on\n')
  process.exitCode = 2
} else {
  await measure().catch((error: unknown) => {
    // Whatever fails after an interrupt fails because of it, but what failed in cleaning up must be known.
    if (!stopped.signal.aborted || error instanceof SuppressedError) throw error
    process.stderr.write('interrupted\n')
    process.exitCode = 130
  })
}

async function measure(): Promise<void> {
  const { signal } = stopped
  const progress = (text: string) => process.stderr.write(`${text}\n`)
  const scenarios = [await measureFirstByte({ rounds, signal, progress })]
  for (const report of scenarios) process.stdout.write(`\n${renderTable(report)}`)
  const path = join(import.meta.dirname, '../results/latest.json')
  const machine = { cpus: cpus().length, cpu: cpus()[0]?.model, kernel: release() }
  const results = { at: new Date().toISOString(), machine, scenarios: scenarios.map(toJson) }
  await mkdir(join(path, '..'), { recursive: true })
  await writeFile(path, `${JSON.stringify(results, undefined, 2)}\n`)
  process.stdout.write(`\nThe numbers are in ${relative(process.cwd(), path)}\n`)
}
