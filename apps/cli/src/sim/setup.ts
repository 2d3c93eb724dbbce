import type { TestContext } from 'node:test'
import { startSimulatedCloud } from './cloud.ts'
import { outcomeOf, runProgram, startProgram } from './run-cli.ts'

/** Starts a simulated cloud that stops with the test, and configures the CLI to use it. */
export async function setupCloud(t: TestContext) {
  const cloud = await startSimulatedCloud()
  t.after(() => cloud.close())
  const env = {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    ATOLL_API_URL: cloud.url,
    ATOLL_API_KEY: cloud.apiKey,
    ATOLL_DATA_DIR: '/nonexistent',
  }
  const run = (args: readonly string[], input?: string | Buffer) => runProgram(args, env, input)
  const start = (args: readonly string[]) => {
    const child = startProgram(args, env)
    t.after(() => child.kill('SIGKILL'))
    return { child, outcome: () => outcomeOf(child) }
  }
  return { cloud, env, run, start }
}
