import { chooseFor } from '../rendezvous.ts'

/** Chooses the node of a team's builds. Few teams change their node when one is added or removed. */
export function chooseHome(teamId: string, nodeIds: readonly string[]): string | undefined {
  return chooseFor(teamId, nodeIds)
}
