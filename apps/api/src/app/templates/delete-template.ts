import { Fault } from '@atoll/kit/fault'
import type { SnapshotStore } from '../../domain/snapshot.ts'
import { mayUse, parseReference } from '../../domain/template.ts'
import type { TemplateStore } from '../../domain/template.ts'
import type { Copying } from '../snapshots/copy-sandbox.ts'

/** Deletes the template or snapshot that a reference names. */
export type DeleteTemplate = (teamId: string, reference: string) => Promise<void>

export function createDeleteTemplate(ports: {
  readonly templates: TemplateStore
  readonly snapshots: SnapshotStore
  readonly copying: Copying
  /** Called after the deletion: builds of the template may be running, and the node may have its files. */
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
    // Tags of a built template are names for one template; each tag of a snapshot is a snapshot of its own.
    const outcome = await templates.delete(template.id, template.isSnapshot ? tag : undefined)
    if (outcome === 'in_use') {
      throw new Fault(
        'invalid',
        'template_in_use',
        `Template ${text} cannot be deleted, because running or paused sandboxes use it: kill them first`,
      )
    }
    onDeleted()
    const unpublished = await snapshots.listUnpublished()
    for (const one of unpublished) if (one.holder === undefined) await copying.discard(one)
  }
}

function notFound(text: string): Fault {
  return new Fault('not_found', 'template_not_found', `Template ${text} was not found`)
}
