import type { BuildStore } from '../../domain/builds/build.ts'
import type { BuildNode } from '../../domain/builds/build-node.ts'
import type { Builder } from './builder.ts'

const intervalMs = 10_000
const nodeTimeoutMs = 60_000

/**
 * One pass: removes templates from the node that no build refers to and no running build is making, and notes which are in
 * the object store.
 */
export async function sweepTemplates(
  ports: {
    readonly builds: Pick<BuildStore, 'known' | 'markDurable'>
    readonly node: Pick<BuildNode, 'listTemplates' | 'deleteTemplate'>
    readonly builder: Pick<Builder, 'isMaking'>
  },
  signal: AbortSignal,
): Promise<number> {
  const { builds, node, builder } = ports
  const limit = () => AbortSignal.any([signal, AbortSignal.timeout(nodeTimeoutMs)])
  // List the node first: a build has its record before the node has any of its files.
  const { ids, durableIds } = await node.listTemplates(limit())
  const known = await builds.known(ids)
  await builds.markDurable(durableIds)
  for (const id of ids) {
    if (!known.has(id) && !builder.isMaking(id)) await node.deleteTemplate(id, limit())
  }
  return intervalMs
}
