import { excess, teamLogBytes } from '../../domain/log.ts'
import type { LogNode, LogOwners } from '../../domain/log.ts'

const intervalMs = 60_000
const timeoutMs = 30_000
const batch = 1_000

/** One pass: deletes the oldest logs of teams over their log quota. Expiry by age is the node's job. */
export async function forgetLogs(
  deps: { readonly node: LogNode; readonly owners: LogOwners; readonly limitBytes?: number },
  signal: AbortSignal,
): Promise<number> {
  const { node, owners, limitBytes = teamLogBytes } = deps
  const within = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
  const logs = await node.list(within)
  const total = logs.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  // Fast path: usually all logs together are below the quota of one team.
  if (total <= limitBytes) return intervalMs
  const teamOf = await owners.teamsOf(logs.map(({ sandboxId }) => sandboxId))
  const surplus = excess(logs, teamOf, limitBytes).map(({ sandboxId }) => sandboxId)
  for (let start = 0; start < surplus.length; start += batch) {
    await node.remove(surplus.slice(start, start + batch), within)
  }
  return intervalMs
}
