import { Fault } from '@atoll/kit/fault'
import type { BuildParent } from '../../domain/builds/build-node.ts'
import { publishedTemplate } from '../../domain/builds/published-image.ts'
import type { Recipe } from '../../domain/builds/recipe.ts'
import type { Resources, Template, TemplateStore } from '../../domain/template.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import type { FindOrInstall } from '../catalogue/find-or-install.ts'

type Templates = Pick<TemplateStore, 'locate' | 'findBuild'>

export interface Parent {
  readonly parent: BuildParent
  readonly resources: Resources
  /** Node that has the parent; undefined if every node has it. */
  readonly nodeId: string | undefined
  /** Whether other nodes can fetch the parent from the object store. */
  readonly isDurable: boolean
}

export interface ParentPorts {
  readonly templates: Templates
  readonly findOrInstall: FindOrInstall
  readonly catalogue: Pick<Catalogue, 'find' | 'provide'>
}

/** Resolves the parent of a recipe. Faults are worded for the author of the recipe. */
export async function findParent(
  { templates, findOrInstall, catalogue }: ParentPorts,
  { fromImage = '', imageLogin: login, fromTemplate }: Recipe,
  by: { readonly teamId: string; readonly signal: AbortSignal },
): Promise<Parent> {
  if (fromTemplate === undefined) {
    const base = await findOfInstallation(templates, 'base')
    const published = publishedTemplate(fromImage)
    if (published === 'base') return toParent(base)
    const known = published === undefined ? undefined : await catalogue.find(published)
    if (!known) {
      const parent = { image: fromImage, login }
      return { parent, resources: base.resources, nodeId: undefined, isDurable: false }
    }
    await catalogue.provide(known, by.signal)
    return toParent(await findOfInstallation(templates, known.alias))
  }
  const found = await findOrInstall({ text: fromTemplate, field: 'fromTemplate', ...by })
  if (found.snapshotId === undefined) return toParent(found)
  throw parentIsSnapshot(fromTemplate)
}

export function parentIsSnapshot(name: string): Fault {
  return new Fault(
    'invalid',
    'parent_is_snapshot',
    `${name} is a snapshot of a sandbox, and templates cannot be built from snapshots: build from the template of that sandbox`,
  )
}

function toParent({ nodeTemplateId, resources, nodeId, isDurable }: Template): Parent {
  return { parent: { nodeTemplateId }, resources, nodeId, isDurable }
}

/** Uses an empty namespace: a team may have its own template of this name. */
async function findOfInstallation(templates: Templates, name: string): Promise<Template> {
  const located = await templates.locate({ namespace: '', name }, '')
  const build = located && (await templates.findBuild(located.id))
  if (build) return build
  throw new Error(`the installation has no template ${name}: restart the server, which adds it`)
}
