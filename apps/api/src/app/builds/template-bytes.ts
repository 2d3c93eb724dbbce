import type { Logger } from '@atoll/kit/log'
import type { BuildStore } from '../../domain/builds/build.ts'
import type { Fleet } from '../nodes/fleet.ts'

/** Returns the disk usage of the templates of a team. Layers that several templates share count once. */
export type TemplateBytes = (teamId: string) => Promise<number>

const nodeTimeoutMs = 5_000

/**
 * Asks the node, which owns the layers. While the node does not answer, the last known size counts: a quota must not
 * keep a sandbox from being paused.
 */
export function createTemplateBytes(ports: {
  readonly builds: Pick<BuildStore, 'listFiles'>
  readonly fleet: Pick<Fleet, 'any'>
  readonly log: Logger
}): TemplateBytes {
  const { builds, fleet, log } = ports
  const known = new Map<string, number>()
  return async (teamId) => {
    const ids = await builds.listFiles(teamId)
    if (ids.length === 0) {
      known.delete(teamId)
      return 0
    }
    try {
      const limit = AbortSignal.timeout(nodeTimeoutMs)
      const bytes = await fleet.any().builds.measureTemplates(ids, limit)
      known.set(teamId, bytes)
      return bytes
    } catch (error) {
      log.warn({ err: error, teamId }, 'the node did not measure the templates of a team')
      return known.get(teamId) ?? 0
    }
  }
}
