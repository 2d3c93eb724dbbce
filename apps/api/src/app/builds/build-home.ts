import { Fault } from '@atoll/kit/fault'
import type { BuildStore } from '../../domain/builds/build.ts'
import { chooseHome } from '../../domain/nodes/home-node.ts'
import type { Fleet, Member } from '../nodes/fleet.ts'
import { idOf } from '../nodes/fleet.ts'
import type { Placing } from '../nodes/placing.ts'

/**
 * Returns the node that has the templates and the uploaded files of a team. Layers do not move between nodes, so all
 * builds of a team run on one node: the one of its last build, as long as it answers. Otherwise a node that takes new
 * sandboxes, if there is one.
 */
export type BuildHome = (teamId: string) => Promise<BuildHomeNode>

export interface BuildHomeNode {
  readonly id: string
  readonly builds: Member['builds']
  /** Whether the node can fetch templates of other nodes. */
  readonly hasObjects: boolean
}

export function createBuildHome(ports: {
  readonly builds: Pick<BuildStore, 'findHome'>
  readonly fleet: Fleet
  readonly placing: Pick<Placing, 'conditionOf'>
}): BuildHome {
  const { builds, fleet, placing } = ports
  const chooseNew = (teamId: string, ids: readonly string[]) => {
    const well = ids.filter((id) => placing.conditionOf(id) === 'well')
    return chooseHome(teamId, well.length > 0 ? well : ids)
  }
  return async (teamId) => {
    const ids = fleet.ids()
    // Saves a query: most fleets have one node.
    const last = ids.length > 1 ? await builds.findHome(teamId) : undefined
    const isInReach = last !== undefined && fleet.reaches(last)
    const id = isInReach ? last : chooseNew(teamId, ids)
    const member = id === undefined ? fleet.any() : fleet.member(id)
    const hasObjects = member.facts()?.hasObjects ?? false
    return { id: idOf(member), builds: member.builds, hasObjects }
  }
}

/** Throws a fault when a template is not on the node where a build is to use it. */
export function checkIsAt(
  name: string,
  template: { readonly nodeId: string | undefined; readonly isDurable: boolean },
  home: BuildHomeNode,
): void {
  if (template.nodeId === undefined || template.nodeId === home.id) return
  if (template.isDurable && home.hasObjects) return
  throw new Fault(
    'conflict',
    'template_elsewhere',
    `Template ${name} is on another node than the builds of the team: build it again from its source`,
  )
}
