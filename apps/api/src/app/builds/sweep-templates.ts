import type { BuildStore } from '../../domain/builds/build.ts'
import type { BuildNode } from '../../domain/builds/build-node.ts'
import { notUploaded } from '../../domain/files-on-node.ts'
import type { IssuedFiles } from '../../domain/issued-files.ts'
import type { Builder } from './builder.ts'

const intervalMs = 10_000
const nodeTimeoutMs = 60_000

/**
 * One pass: removes templates from the node that no build refers to any more and no running build is making, and notes which
 * are in the object store. Templates that the store never had stay: it may have been restored to an older state.
 */
export async function sweepTemplates(
  ports: {
    readonly builds: Pick<BuildStore, 'known' | 'markDurable' | 'clearDurable'>
    readonly issuedFiles: Pick<IssuedFiles, 'among'>
    readonly onUnknown: (id: string) => void
    readonly node: {
      readonly id: string
      readonly hasObjects: boolean
      readonly builds: Pick<BuildNode, 'listTemplates' | 'deleteTemplate'>
    }
    readonly builder: Pick<Builder, 'isMaking'>
  },
  signal: AbortSignal,
): Promise<number> {
  const { builds, issuedFiles, node, builder, onUnknown } = ports
  const limit = () => AbortSignal.any([signal, AbortSignal.timeout(nodeTimeoutMs)])
  // List the node first: a build has its record before the node has any of its files.
  const { ids, durableIds } = await node.builds.listTemplates(limit())
  const known = await builds.known(ids)
  await builds.markDurable(durableIds)
  // A node without access to the object store cannot say what the store has.
  if (node.hasObjects) await builds.clearDurable(node.id, notUploaded({ ids, durableIds }))
  const unknown = ids.filter((id) => !known.has(id) && !builder.isMaking(id))
  const issued = await issuedFiles.among(unknown)
  for (const id of unknown) {
    if (issued.has(id)) await node.builds.deleteTemplate(id, limit())
    else onUnknown(id)
  }
  return intervalMs
}
