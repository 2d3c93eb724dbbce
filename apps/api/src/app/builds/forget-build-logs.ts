import type { Clock } from '@atoll/kit/clock'
import type { BuildLogStore } from '../../domain/builds/build-log.ts'

const keptMs = 7 * 24 * 60 * 60 * 1000
const batch = 20
const intervalMs = { whileThereAreMore: 1_000, usual: 600_000 }

/** One pass: deletes old build logs. They are kept as long as sandbox logs. */
export async function forgetBuildLogs(ports: {
  readonly logs: BuildLogStore
  readonly clock: Clock
}): Promise<number> {
  const { logs, clock } = ports
  const count = await logs.forget(new Date(clock.now().getTime() - keptMs), batch)
  return count === batch ? intervalMs.whileThereAreMore : intervalMs.usual
}
