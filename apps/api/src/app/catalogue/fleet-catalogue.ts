import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import type { CatalogueNode, CatalogueTemplate, InstallProgress } from '../../domain/catalogue.ts'
import type { Fleet, Member } from '../nodes/fleet.ts'

/**
 * Catalogue of all nodes together. A template counts as installed once every node in reach has it, since sandboxes of
 * the installation's templates may start on any of them.
 */
export function createFleetCatalogue(fleet: Pick<Fleet, 'any' | 'ids' | 'member'>): CatalogueNode {
  const inReach = (): Member[] => {
    const members = fleet.ids().map(fleet.member)
    return members.length > 0 ? members : [fleet.any()]
  }
  return {
    async list(signal) {
      const found = new Map<string, CatalogueTemplate>()
      for (const template of await listAll(inReach(), signal)) {
        const before = found.get(template.nodeTemplateId)
        const isInstalled = template.isInstalled && before?.isInstalled !== false
        found.set(template.nodeTemplateId, { ...template, isInstalled })
      }
      return [...found.values()]
    },
    async *install(order, signal) {
      const members = inReach()
      // One after the other: each install downloads the same packages. A node that has the template ends at once.
      for (const [index, { catalogue }] of members.entries()) {
        for await (const progress of catalogue.install(order, signal)) {
          yield share(progress, index, members.length)
        }
      }
    },
  }
}

/** The answers of a thousand nodes at once would hold up requests. */
const asksAtOnce = 50

/** Leaves out nodes that do not answer, unless none does: creates on the others must not fail or wait because of them. */
async function listAll(
  members: readonly Member[],
  signal: AbortSignal,
): Promise<CatalogueTemplate[]> {
  const limited = limitConcurrency(asksAtOnce)
  const asked = members.map(({ catalogue }) => limited(() => catalogue.list(signal), signal))
  const answers = await Promise.allSettled(asked)
  const lists = answers.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  if (lists.length === 0) await asked[0]
  return lists.flat()
}

function share(
  { label, fraction }: InstallProgress,
  index: number,
  count: number,
): InstallProgress {
  return { label, fraction: (index + fraction) / count }
}
