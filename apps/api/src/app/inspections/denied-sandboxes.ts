import type { Clock } from '@atoll/kit/clock'
import type { LogOwners } from '../../domain/log.ts'
import type { DeniedSandbox } from '../../domain/network/connections.ts'
import type { Fleet } from '../nodes/fleet.ts'

/** Lists the running sandboxes of a team that were denied a connection in the last hour, newest first. */
export type ListDeniedSandboxes = (teamId: string) => Promise<DeniedSandbox[]>

const windowMs = 60 * 60 * 1_000
const maxListed = 100
const timeoutMs = 5_000
/** Also the number of sandboxes that one statement of the store may name. */
const batch = 500

/** Asks each node once, whichever number of sandboxes the team has. A node that does not answer is left out. */
export function createListDeniedSandboxes({
  owners,
  fleet,
  clock,
}: {
  readonly owners: Pick<LogOwners, 'nodesOf'>
  readonly fleet: Pick<Fleet, 'ids' | 'member'>
  readonly clock: Clock
}): ListDeniedSandboxes {
  return async (teamId) => {
    const sinceMs = clock.now().getTime() - windowMs
    const signal = AbortSignal.timeout(timeoutMs)
    const perNode = await Promise.all(
      fleet
        .ids()
        .map((nodeId) =>
          Promise.try(() => fleet.member(nodeId).connections.listDenied(sinceMs, signal)).catch(
            () => [],
          ),
        ),
    )
    const all = perNode.flat().toSorted((a, b) => b.lastMs - a.lastMs)
    const listed: DeniedSandbox[] = []
    for (let start = 0; start < all.length && listed.length < maxListed; start += batch) {
      const some = all.slice(start, start + batch)
      const places = await owners.nodesOf(
        teamId,
        some.map(({ sandboxId }) => sandboxId),
      )
      const own = new Set(places.map(({ sandboxId }) => sandboxId))
      listed.push(...some.filter(({ sandboxId }) => own.has(sandboxId)))
    }
    return listed.slice(0, maxListed)
  }
}
