import type { Template } from '@atoll/contracts/templates/manage'
import type { z } from 'zod'
import type { TemplateView } from '../../app/templates/templates.ts'
import { nameOf } from '../../domain/template.ts'
import type { Resources } from '../../domain/template.ts'

/** Placeholder for a template without a build. */
const noBuild = {
  id: '00000000-0000-0000-0000-000000000000',
  resources: { cpuCount: 0, memoryMb: 0, diskSizeMb: 0 },
}

export function toTemplateView(template: TemplateView): z.infer<typeof Template> {
  const { id: buildID, resources } = template.ready ?? noBuild
  return {
    templateID: template.id,
    buildID,
    cpuCount: resources.cpuCount,
    memoryMB: resources.memoryMb,
    diskSizeMB: resources.diskSizeMb,
    public: template.public,
    aliases: template.names.map(({ alias }) => alias),
    names: template.names.map(nameOf),
    createdAt: template.createdAt.toISOString(),
    updatedAt: template.updatedAt.toISOString(),
    createdBy: template.createdBy ?? null,
    lastSpawnedAt: template.lastSpawnedAt?.toISOString() ?? null,
    spawnCount: template.spawnCount,
    buildCount: template.buildCount,
    envdVersion: template.envdVersion,
    buildStatus: template.buildStatus,
  }
}

/** Shows the template with the requested build, which may not be ready yet. */
export function toRequestedView(
  template: TemplateView,
  { id, resources }: { readonly id: string; readonly resources: Resources },
): z.infer<typeof Template> {
  const { cpuCount, memoryMb: memoryMB } = resources
  const view = toTemplateView(template)
  // Zero before the parent is known: a build of several requests names its parent at its start.
  const diskSizeMB = resources.diskSizeMb || view.diskSizeMB
  return { ...view, buildID: id, cpuCount, memoryMB, diskSizeMB }
}
