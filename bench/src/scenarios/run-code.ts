/** Round trip of `1 + 1` by the published package, against a bare Jupyter client and kernel in the same sandbox. */
import { createInterpreter, runCode as runCodeOnce } from '../interpreter.ts'
import { startJupyter } from '../jupyter.ts'
import { interleave, timed } from '../scenario.ts'
import type { Samples, Scenario } from '../scenario.ts'

/** Executions per round: connecting to the Jupyter kernel takes longer than one of them. */
const executions = 5

export const runCode: Scenario = {
  name: 'run-code',
  rounds: 20,
  async measure(context) {
    const { testBed, rounds, progress } = context
    const sandbox = await createInterpreter(await testBed.cloud('gvisor'))
    try {
      progress('installing Jupyter in the sandbox')
      const jupyter = await startJupyter(sandbox)
      const { row } = await interleave(context, [
        async ({ record }: Samples) => {
          for (const ms of await jupyter.timeExecutions(executions)) record(bare, ms)
        },
        async ({ record }: Samples) => {
          for (let count = 0; count < executions; count += 1) {
            record(atoll, await timed(() => runCodeOnce(sandbox)))
          }
        },
      ])
      return [
        {
          scenario: 'run-code',
          description: `1 + 1 in a running Python kernel, ${rounds} rounds of ${executions}, interleaved`,
          rows: [row(bare), row(atoll, bare)],
        },
      ]
    } finally {
      await sandbox.kill()
    }
  },
}

const bare = 'jupyter_client in the sandbox, gvisor'
const atoll = 'runCode by @e2b/code-interpreter, gvisor'
