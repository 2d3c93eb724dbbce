import { Fault } from '@atoll/kit/fault'
import type { SnapshotStore } from '../domain/snapshot.ts'
import { mayUse, parseReference } from '../domain/template.ts'
import type { TemplateStore } from '../domain/template.ts'
import type { Copying } from './copy-sandbox.ts'

/** Deletes what a reference means, be it a template or a snapshot. */
export type DeleteTemplate = (teamId: string, reference: string) => Promise<void>

export function createDeleteTemplate(ports: {
  readonly templates: TemplateStore
  readonly snapshots: SnapshotStore
  readonly copying: Copying
  /** Builds of it may be under way, and the node may have its files. */
  readonly onDeleted: () => void
}): DeleteTemplate {
  const { templates, snapshots, copying, onDeleted } = ports
  return async (teamId, text) => {
    const reference = parseReference(text)
    const template = await templates.locate(reference, teamId)
    if (!template) throw notFound(text)
    if (template.teamId !== teamId) {
      const whose =
        mayUse(template, teamId) && !template.teamId ? 'the installation' : 'another team'
      throw new Fault('forbidden', 'template_forbidden', `Template ${text} belongs to ${whose}`)
    }
    const { tag } = reference
    if (tag !== undefined && !(await templates.findBuild(template.id, tag))) throw notFound(text)
    // A tag of a template that was built is a name for it; each snapshot under a name stands for itself.
    const outcome = await templates.delete(template.id, template.isSnapshot ? tag : undefined)
    if (outcome === 'in_use') {
      throw new Fault(
        'invalid',
        'template_in_use',
        `Template ${text} cannot be deleted: sandboxes that run or are paused were made of it`,
      )
    }
    onDeleted()
    const loose = await snapshots.listLoose()
    for (const { id, holder } of loose) if (holder === undefined) await copying.discard(id)
  }
}

function notFound(text: string): Fault {
  return new Fault('not_found', 'template_not_found', `Template ${text} was not found`)
}
