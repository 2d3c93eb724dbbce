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
  /** Whether it is enough that one node has the template. */
  readonly isOneNodeEnough?: boolean
  /** Longest wait for an install. */
  readonly installLimitMs?: number
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

  return async ({ text, teamId, field, signal, isOneNodeEnough, installLimitMs }) => {
    const found = await findTemplate(templates, text, teamId, field).catch(undefinedIfNotFound)
    const missing = await findMissing(text, teamId, found)
    if (missing) {
      if (found && isOneNodeEnough && catalogue.isOnSomeNode(missing)) {
        catalogue.installOnOthers(missing)
        return found
      }
      await catalogue.provide(missing, signal, installLimitMs)
      return findTemplate(templates, missing.alias, teamId, field)
    }
    // Another request may have installed the template since the first lookup.
    return found ?? findTemplate(templates, text, teamId, field)
  }
}

function undefinedIfNotFound(error: unknown): undefined {
  if (error instanceof Fault && error.reason === 'template_not_found') return undefined
  throw error
}
