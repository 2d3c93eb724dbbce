import { Fault } from '@atoll/kit/fault'
import type { FaultKind } from '@atoll/kit/fault'

/** Faults that concern a single ID. Any other fault stops the loop. */
const faultsOfOneId: ReadonlySet<FaultKind> = new Set([
  'invalid',
  'forbidden',
  'not_found',
  'conflict',
])

/** Handles the IDs one after the other. Failed IDs do not stop the rest; their messages are reported at the end. */
export async function forEachId(
  ids: readonly string[],
  work: (id: string) => Promise<void>,
): Promise<void> {
  const failures: Fault[] = []
  for (const id of ids) {
    await work(id).catch((thrown: unknown) => {
      if (!(thrown instanceof Fault) || !faultsOfOneId.has(thrown.kind)) throw thrown
      failures.push(thrown)
    })
  }
  const [first] = failures
  if (!first) return
  const message = failures.map((fault) => fault.message).join('; ')
  throw new Fault(first.kind, first.reason, message, { cause: first })
}
