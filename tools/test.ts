/**
 * `npm test`: the checks, the tests beside the code, those of the API once more on PostgreSQL, then
 * the system tests; the first failing phase is the last. `npm test -- --unit`, `--postgres`,
 * `--system` and `--check` run one phase, and words run the test files with such a word in their
 * path: `npm test -- --unit edge/src/http`.
 */
import { spawn } from 'node:child_process'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startPostgres } from './postgres.ts'
import { countOutcomes } from './test-summary.ts'

const root = join(import.meta.dirname, '..')
const { values: chosen, positionals: words } = parseArgs({
  allowPositionals: true,
  options: {
    check: { type: 'boolean' },
    unit: { type: 'boolean' },
    postgres: { type: 'boolean' },
    system: { type: 'boolean' },
  },
})

const phases = [
  { name: 'check', args: ['tools/check.ts'] },
  {
    name: 'unit',
    args: ['--test', '--test-timeout=300000', '--test-concurrency=2'],
    files: [
      'apps/*/src/**/*.test.ts',
      'apps/*/guest/*.test.ts',
      'packages/*/src/**/*.test.ts',
      'tools/*.test.ts',
      'bench/src/**/*.test.ts',
    ],
  },
  {
    name: 'postgres',
    args: ['--test', '--test-timeout=300000', '--test-concurrency=2'],
    files: ['apps/api/src/*.test.ts', 'apps/api/src/db/*.test.ts'],
    prepare: preparePostgres,
  },
  {
    name: 'system',
    args: ['--test', '--test-timeout=600000', '--test-concurrency=1'],
    files: ['tests/system/**/*.test.ts'],
  },
] as const

const total = { passed: 0, failed: 0 }
const started = performance.now()
for (const phase of phases) {
  if (!isChosen(phase.name)) continue
  if (!(await runPhase(phase))) {
    process.exitCode = 1
    break
  }
}
if (
  total.passed + total.failed === 0 &&
  isChosen('unit', 'postgres', 'system') &&
  !process.exitCode
) {
  process.stdout.write(`no test file matches ${words.join(' ')}\n`)
  process.exitCode = 1
}
heading(process.exitCode ? 'FAILED' : 'all passed', started)
process.stdout.write(`${total.passed} passed, ${total.failed} failed\n`)

/** Without flags every phase runs; words alone mean tests, so the checks are left out. */
function isChosen(...names: ReadonlyArray<keyof typeof chosen>): boolean {
  if (Object.keys(chosen).length > 0) return names.some((name) => chosen[name])
  return words.length === 0 || !names.includes('check')
}

async function runPhase(phase: (typeof phases)[number]): Promise<boolean> {
  const files = 'files' in phase ? findFiles(phase.files) : []
  if ('files' in phase && files.length === 0) {
    if (words.length > 0) return true
    process.stdout.write(`there are no ${phase.name} tests\n`)
    return false
  }
  process.stdout.write(`\n== ${phase.name}\n`)
  const phaseStarted = performance.now()
  await using prepared = 'prepare' in phase ? await phase.prepare() : undefined
  const { code, output } = await runNode([...phase.args, ...files], prepared?.env)
  const { passed, failed } = countOutcomes(output)
  total.passed += passed
  total.failed += failed
  heading(`${phase.name} ${code === 0 ? 'passed' : 'FAILED'}`, phaseStarted)
  return code === 0
}

/** One server for all test files; each test has a database of its own. */
async function preparePostgres() {
  const server = await startPostgres()
  return {
    env: { ATOLL_TEST_POSTGRES: server.url },
    [Symbol.asyncDispose]: () => server.close(),
  }
}

function findFiles(patterns: readonly string[]): string[] {
  return globSync([...patterns], { cwd: root, exclude: ['**/node_modules/**'] })
    .filter((path) => words.length === 0 || words.some((word) => path.includes(word)))
    .toSorted((a, b) => (a < b ? -1 : 1))
}

/** Shows the output as it comes, and keeps its end, where the summary is. */
function runNode(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<{ code: number; output: string }> {
  const color = process.stdout.isTTY ? { FORCE_COLOR: '1' } : {}
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, ...color, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => {
    process.stdout.write(chunk)
    output = (output + chunk.toString('utf8')).slice(-1_000_000)
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code: code ?? 1, output }))
  })
}

function heading(text: string, since: number): void {
  const seconds = ((performance.now() - since) / 1000).toFixed(1)
  process.stdout.write(`== ${text} (${seconds} s)\n`)
}
