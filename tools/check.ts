/** `npm run check`: all checks that do not run the code. */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { tryRun } from '@atoll/kit/run'
import { compareCliPage } from './cli.ts'
import { compareConfigurationPage } from './configuration.ts'
import { compareErrorsPage } from './errors.ts'
import { compareGenerated } from './generated.ts'
import { compareOperationsPage } from './operations.ts'
import { checkStyle } from './style.ts'

const root = join(import.meta.dirname, '..')
const programs = join(root, 'node_modules/.bin')
const env = { ...process.env, PATH: `${programs}:${process.env.PATH}` }

interface Step {
  readonly name: string
  readonly run: () => Promise<Outcome>
}

interface Outcome {
  readonly failure: string | undefined
  /** Advice that does not fail the step. */
  readonly note?: string | undefined
}

const steps: readonly Step[] = [
  { name: 'lint', run: program('oxlint', '--type-aware', '--deny-warnings') },
  { name: 'types', run: program('tsc', '--project', '.') },
  { name: 'types of pages', run: program('tsc', '--project', 'apps/dashboard') },
  { name: 'dead code', run: program('knip', '--no-progress', '--no-config-hints') },
  { name: 'format', run: program('oxfmt', '--check', '.') },
  { name: 'style', run: checkStyle },
  { name: 'layers', run: program('node', '--test', 'tools/layers.test.ts') },
  { name: 'protocols', run: program('buf', 'lint', 'packages/contracts/proto') },
  { name: 'generated code', run: async () => ({ failure: await compareGenerated(root, env) }) },
  { name: 'configuration page', run: async () => ({ failure: await compareConfigurationPage() }) },
  { name: 'operations page', run: async () => ({ failure: await compareOperationsPage() }) },
  { name: 'command line page', run: async () => ({ failure: await compareCliPage() }) },
  { name: 'errors page', run: async () => ({ failure: await compareErrorsPage() }) },
]

const failed = await runAll(steps)
if (failed > 0) {
  process.stdout.write(`${failed} of ${steps.length} checks failed\n`)
  process.exitCode = 1
}

async function runAll(all: readonly Step[]): Promise<number> {
  const queue = [...all]
  let failures = 0
  const worker = async () => {
    for (let step = queue.shift(); step; step = queue.shift()) {
      if (!(await runOne(step))) failures += 1
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() }, worker))
  return failures
}

async function runOne({ name, run }: Step): Promise<boolean> {
  const started = performance.now()
  const { failure, note } = await run().catch((error: unknown) => ({
    failure: String(error),
    note: undefined,
  }))
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  const verdict = failure === undefined ? 'ok    ' : 'FAILED'
  process.stdout.write(`${verdict}  ${name.padEnd(18)}  ${seconds} s\n`)
  for (const text of [failure, note]) if (text) process.stdout.write(`${text.trimEnd()}\n`)
  return failure === undefined
}

function program(name: string, ...args: string[]): Step['run'] {
  return async () => {
    const { code, stdout, stderr } = await tryRun(join(programs, name), args, {
      cwd: root,
      env,
      timeoutMs: 900_000,
    })
    const output =
      `${stdout}${stderr}` || `${name} failed with exit code ${code} and printed nothing`
    return { failure: code === 0 ? undefined : output }
  }
}
