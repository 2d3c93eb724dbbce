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
      const lists = await Promise.all(inReach().map(({ catalogue }) => catalogue.list(signal)))
      const found = new Map<string, CatalogueTemplate>()
      for (const template of lists.flat()) {
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

function share(
  { label, fraction }: InstallProgress,
  index: number,
  count: number,
): InstallProgress {
  return { label, fraction: (index + fraction) / count }
}
