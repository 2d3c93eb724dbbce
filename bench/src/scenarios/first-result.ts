/**
 * Time from the create to the first result by the published packages: `runCode('1 + 1')` in `code-interpreter-v1` against
 * `commands.run` in `base`, from the warm pool and by restoring the prototype.
 */
import type { HttpCloud } from '@atoll/system-tests/http-cloud'
import { Sandbox } from 'e2b'
import { createInterpreter, runCode } from '../interpreter.ts'
import { waitForFullPool } from '../pool.ts'
import { interleave, timed } from '../scenario.ts'
import type { Samples, Scenario } from '../scenario.ts'

const kinds = ['pooled', 'restores'] as const

export const firstResult: Scenario = {
  name: 'first-result',
  rounds: 20,
  async measure(context) {
    const { testBed, rounds } = context
    const measurements = []
    for (const kind of kinds) {
      const cloud = await testBed.cloud('gvisor', kind)
      const settle = () => (kind === 'pooled' ? waitForFullPool(cloud) : undefined)
      // The create of the template's first sandbox makes its prototype.
      await (await createInterpreter(cloud)).kill()
      measurements.push(
        async ({ record }: Samples) => {
          await settle()
          record(command(kind), await timeFirst(() => createBase(cloud), printHello))
        },
        async ({ record }: Samples) => {
          await settle()
          record(code(kind), await timeFirst(() => createInterpreter(cloud), runCode))
        },
      )
    }
    const { row } = await interleave(context, measurements)
    return [
      {
        scenario: 'first-result',
        description: `From the create to the first result under gVisor, ${rounds} rounds, interleaved`,
        rows: kinds.flatMap((kind) => [row(command(kind)), row(code(kind), command(kind))]),
      },
    ]
  },
}

async function timeFirst<T extends { kill(): Promise<unknown> }>(
  create: () => Promise<T>,
  use: (sandbox: T) => Promise<unknown>,
): Promise<number> {
  const created: T[] = []
  const elapsedMs = await timed(async () => {
    const sandbox = await create()
    created.push(sandbox)
    await use(sandbox)
  })
  for (const sandbox of created) await sandbox.kill()
  return elapsedMs
}

function createBase({ installation }: HttpCloud): Promise<Sandbox> {
  return Sandbox.create('base', { ...installation.connection })
}

async function printHello(sandbox: Sandbox): Promise<void> {
  const { stdout } = await sandbox.commands.run('echo hello')
  if (stdout !== 'hello\n') throw new Error(`The command printed ${stdout}`)
}

const starts = { pooled: 'from the pool', restores: 'restored' } as const
const command = (kind: (typeof kinds)[number]) => `base, ${starts[kind]}: commands.run`
const code = (kind: (typeof kinds)[number]) => `code-interpreter, ${starts[kind]}: runCode`
