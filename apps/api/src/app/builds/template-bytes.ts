import type { Logger } from '@atoll/kit/log'
import type { BuildStore } from '../../domain/builds/build.ts'
import type { Fleet } from '../nodes/fleet.ts'

/** Returns the disk usage of the templates of a team. Layers that several templates share count once. */
export type TemplateBytes = (teamId: string) => Promise<number>

const nodeTimeoutMs = 5_000

/**
 * Asks the nodes, which own the layers. While a node does not answer, the last known size counts: a quota must not
 * keep a sandbox from being paused.
 */
export function createTemplateBytes(ports: {
  readonly builds: Pick<BuildStore, 'listFiles'>
  readonly fleet: Pick<Fleet, 'any' | 'member'>
  readonly log: Logger
}): TemplateBytes {
  const { builds, fleet, log } = ports
  const known = new Map<string, number>()
  return async (teamId) => {
    const files = await builds.listFiles(teamId)
    if (files.length === 0) {
      known.delete(teamId)
      return 0
    }
    try {
      const limit = AbortSignal.timeout(nodeTimeoutMs)
      const byNode = Map.groupBy(files, ({ nodeId }) => nodeId)
      const sizes = [...byNode].map(async ([nodeId, group]) => {
        const member = nodeId === undefined ? fleet.any() : fleet.member(nodeId)
        const ids = group.map(({ nodeTemplateId }) => nodeTemplateId)
        return member.builds.measureTemplates(ids, limit)
      })
      const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
      known.set(teamId, bytes)
      return bytes
    } catch (error) {
      log.warn({ err: error, teamId }, 'the node did not measure the templates of a team')
      return known.get(teamId) ?? 0
    }
  }
}
