import { Fault } from '@atoll/kit/fault'
import type { FaultKind } from '@atoll/kit/fault'

/** These are about one of them, and say nothing of the others. */
const faultsOfOneId: ReadonlySet<FaultKind> = new Set([
  'invalid',
  'forbidden',
  'not_found',
  'conflict',
])

/** One after the other. Those that fail do not keep the rest from it; they are reported in the end, in one line. */
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
