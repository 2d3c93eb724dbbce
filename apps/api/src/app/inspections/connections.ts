import type { NetworkConnection } from '../../domain/network/connections.ts'
import type { Fleet } from '../nodes/fleet.ts'
import type { Sandboxes } from '../sandboxes/sandboxes.ts'
import type { TeamSandbox } from './file-changes.ts'

/** Returns the outgoing connections of a team's sandbox. */
export type ListConnections = (
  sandbox: TeamSandbox,
  signal: AbortSignal,
) => Promise<NetworkConnection[]>

export function createListConnections({
  sandboxes,
  fleet,
}: {
  readonly sandboxes: Pick<Sandboxes, 'get'>
  readonly fleet: Pick<Fleet, 'member'>
}): ListConnections {
  return async ({ teamId, sandboxId }, signal) => {
    const { nodeId } = await sandboxes.get(teamId, sandboxId)
    return fleet.member(nodeId).connections.list(sandboxId, signal)
  }
}
