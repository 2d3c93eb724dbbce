import type { Clock } from '@atoll/kit/clock'
import type { LogOwners } from '../../domain/log.ts'
import type { DeniedSandbox } from '../../domain/network/connections.ts'
import type { Fleet } from '../nodes/fleet.ts'

/** Lists the running sandboxes of a team that were denied a connection in the last hour, newest first. */
export type ListDeniedSandboxes = (teamId: string) => Promise<DeniedSandbox[]>

const windowMs = 60 * 60 * 1_000
const maxListed = 100
const timeoutMs = 5_000

/** Asks each node that runs sandboxes of the team once. A node that does not answer is left out. */
export function createListDeniedSandboxes({
  owners,
  fleet,
  clock,
}: {
  readonly owners: Pick<LogOwners, 'runningOf'>
  readonly fleet: Pick<Fleet, 'member'>
  readonly clock: Clock
}): ListDeniedSandboxes {
  return async (teamId) => {
    const sinceMs = clock.now().getTime() - windowMs
    const places = await owners.runningOf(teamId)
    const signal = AbortSignal.timeout(timeoutMs)
    const askNode = async (nodeId: string, sandboxIds: readonly string[]) => {
      const own = new Set(sandboxIds)
      const request = { sinceMs, sandboxIds }
      const listed = await fleet.member(nodeId).connections.listDenied(request, signal)
      return listed.filter(({ sandboxId }) => own.has(sandboxId))
    }
    const perNode = await Promise.all(
      [...Map.groupBy(places, ({ nodeId }) => nodeId)].map(([nodeId, here]) => {
        const sandboxIds = here.map(({ sandboxId }) => sandboxId)
        return askNode(nodeId, sandboxIds).catch((): DeniedSandbox[] => [])
      }),
    )
    return perNode
      .flat()
      .toSorted((a, b) => b.lastMs - a.lastMs)
      .slice(0, maxListed)
  }
}
