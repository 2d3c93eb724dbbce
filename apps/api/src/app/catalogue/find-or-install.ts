import { Fault } from '@atoll/kit/fault'
import { defaultTag, parseReference } from '../../domain/template.ts'
import type { Template, TemplateStore } from '../../domain/template.ts'
import { findTemplate } from '../templates/find-template.ts'
import type { Catalogue } from './catalogue.ts'

/** Resolves a template reference like `findTemplate`. Installs a template of the catalogue that is missing. */
export type FindOrInstall = (reference: {
  readonly text: string
  readonly teamId: string
  /** Name of the field in the request. */
  readonly field?: string
  readonly signal: AbortSignal
}) => Promise<Template>

export function createFindOrInstall({
  templates,
  catalogue,
}: {
  readonly templates: Pick<TemplateStore, 'locate' | 'findBuild'>
  readonly catalogue: Catalogue
}): FindOrInstall {
  async function findMissing(text: string, teamId: string, found: Template | undefined) {
    if (found) {
      if (found.snapshotId !== undefined) return undefined
      // A node that does not answer fails the request later, with a better error.
      const template = await catalogue.findById(found.nodeTemplateId).catch(() => undefined)
      return template?.isInstalled ? undefined : template
    }
    const reference = parseReference(text)
    const { namespace, name, tag = defaultTag } = reference
    if (namespace !== undefined || tag !== defaultTag) return undefined
    // A team may have a template of that name, which has no build yet.
    return (await templates.locate(reference, teamId)) ? undefined : catalogue.find(name)
  }

  return async ({ text, teamId, field, signal }) => {
    const result = await findTemplate(templates, text, teamId, field).catch(unlessNotFound)
    const found = result instanceof Fault ? undefined : result
    const missing = await findMissing(text, teamId, found)
    if (missing) {
      await catalogue.provide(missing, signal)
      return findTemplate(templates, missing.alias, teamId, field)
    }
    if (result instanceof Fault) throw result
    return result
  }
}

function unlessNotFound(error: unknown): Fault {
  if (error instanceof Fault && error.reason === 'template_not_found') return error
  throw error
}
