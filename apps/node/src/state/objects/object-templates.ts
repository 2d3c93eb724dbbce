import type { Bundles } from '@atoll/objects/bundles'
import { readFacts } from '@atoll/objects/manifest'
import { z } from 'zod'
import { StoredTemplate } from '../built-templates.ts'
import type { BuiltTemplate, BuiltTemplates } from '../built-templates.ts'
import type { Marks } from './marks.ts'
import type { ObjectLayers } from './object-layers.ts'
import type { StoredNeeds } from './stored-layers.ts'
import type { Transfers } from './transfers.ts'

/** Built templates in the object store: a manifest each, and the layers. */
export interface ObjectTemplates {
  upload(template: BuiltTemplate, signal: AbortSignal): Promise<void>
  /** Throws a fault when the store has no such template. */
  fetch(templateId: string): Promise<void>
  /** Returns what a fetch of this template needs. Undefined: the store has no such template. Changes no mark. */
  findNeeds(templateId: string, signal: AbortSignal): Promise<StoredNeeds | undefined>
}

const Facts = z.object({ template: StoredTemplate })

export function createObjectTemplates(ports: {
  readonly transfers: Transfers
  readonly bundles: Pick<Bundles, 'findWhole'>
  readonly marks: Marks
  readonly layers: ObjectLayers
  readonly templates: Pick<BuiltTemplates, 'find' | 'findReadable' | 'add'>
}): ObjectTemplates {
  const { transfers, bundles, marks, layers, templates } = ports
  return {
    async upload(template, signal) {
      const { templateId, layer } = template
      await layers.upload(layer, signal)
      const outcome = await transfers.upload(
        {
          path: pathOf(templateId),
          facts: { template },
          folders: {},
          isWanted: () => templates.find(templateId) !== undefined,
        },
        signal,
      )
      if (outcome !== 'unwanted') await marks.add('templates', templateId)
    },

    async fetch(templateId) {
      if (templates.findReadable(templateId)) return
      const manifest = await transfers.find(pathOf(templateId))
      const { template } = readFacts(manifest, Facts)
      await layers.fetch(template.layer)
      await templates.add({ ...template, templateId })
      await marks.add('templates', templateId)
    },

    async findNeeds(templateId, signal) {
      const manifest = await bundles.findWhole(pathOf(templateId), signal)
      if (!manifest) return undefined
      const { template } = readFacts(manifest, Facts)
      return template.templateId === templateId ? { layer: template.layer } : undefined
    },
  }
}

function pathOf(templateId: string): string {
  return `templates/${templateId}`
}
