/** `npm run check`: everything about the code that can be said without running it. */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { tryRun } from '@atoll/kit/run'
import { compareConfigurationPage } from './configuration.ts'
import { compareGenerated } from './generated.ts'
import { compareOperationsPage } from './operations.ts'

const root = join(import.meta.dirname, '..')
const programs = join(root, 'node_modules/.bin')
const env = { ...process.env, PATH: `${programs}:${process.env.PATH}` }

interface Step {
  readonly name: string
  /** Gives what is wrong, or nothing. */
  readonly run: () => Promise<string | undefined>
}

const steps: readonly Step[] = [
  { name: 'lint', run: program('oxlint', '--type-aware', '--deny-warnings') },
  { name: 'types', run: program('tsc', '--project', '.') },
  { name: 'dead code', run: program('knip', '--no-progress', '--no-config-hints') },
  { name: 'format', run: program('oxfmt', '--check', '.') },
  { name: 'layers', run: program('node', '--test', 'tools/layers.test.ts') },
  { name: 'protocols', run: program('buf', 'lint', 'packages/contracts/proto') },
  { name: 'generated code', run: () => compareGenerated(root, env) },
  { name: 'configuration page', run: compareConfigurationPage },
  { name: 'operations page', run: compareOperationsPage },
]

const failed = await runAll(steps)
if (failed > 0) {
  process.stdout.write(`${failed} of ${steps.length} checks failed\n`)
  process.exitCode = 1
}

async function runAll(waiting: readonly Step[]): Promise<number> {
  const queue = [...waiting]
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
  const wrong = await run().catch((error: unknown) => String(error))
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  const verdict = wrong === undefined ? 'ok    ' : 'FAILED'
  process.stdout.write(`${verdict}  ${name.padEnd(18)}  ${seconds} s\n`)
  if (wrong !== undefined) process.stdout.write(`${wrong.trimEnd()}\n`)
  return wrong === undefined
}

function program(name: string, ...args: string[]): Step['run'] {
  return async () => {
    const { code, stdout, stderr } = await tryRun(join(programs, name), args, {
      cwd: root,
      env,
      timeoutMs: 900_000,
    })
    return code === 0 ? undefined : `${stdout}${stderr}` || `${name} ended without a word`
  }
}
