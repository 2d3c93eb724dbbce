import type { HttpCloud } from '@atoll/system-tests/http-cloud'
import { timeCreate } from './first-output.ts'
import { waitForFullPool } from './pool.ts'
import { interleave } from './scenario.ts'
import type { Samples, ScenarioContext } from './scenario.ts'

/** Measures creates from the warm pools of several installations, interleaved. The rows of each begin with its name. */
export function createInTurns(
  context: ScenarioContext,
  clouds: ReadonlyArray<readonly [string, HttpCloud]>,
) {
  return interleave(
    context,
    clouds.map(([name, cloud]) => async ({ record }: Samples) => {
      // Installations share the machine: none may fill its pool during a measurement.
      await Promise.all(clouds.map(([, each]) => waitForFullPool(each)))
      const { createdMs, printedMs } = await timeCreate(cloud)
      record(`${name}: until 201`, createdMs)
      record(`${name}: until first output`, printedMs)
    }),
  )
}
