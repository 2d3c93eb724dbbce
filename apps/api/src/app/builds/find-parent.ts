import { Fault } from '@atoll/kit/fault'
import type { BuildParent } from '../../domain/builds/build-node.ts'
import type { Recipe } from '../../domain/builds/recipe.ts'
import type { Resources, Template, TemplateStore } from '../../domain/template.ts'
import type { FindOrInstall } from '../catalogue/find-or-install.ts'

type Templates = Pick<TemplateStore, 'locate' | 'findBuild'>

export interface Parent {
  readonly parent: BuildParent
  readonly resources: Resources
}

/** Resolves the parent of a recipe. Faults are worded for the author of the recipe. */
export async function findParent(
  { templates, findOrInstall }: { templates: Templates; findOrInstall: FindOrInstall },
  { fromImage = '', imageLogin: login, fromTemplate }: Recipe,
  by: { readonly teamId: string; readonly signal: AbortSignal },
): Promise<Parent> {
  if (fromTemplate === undefined) {
    const base = await findBase(templates)
    if (baseImage.test(fromImage)) return toParent(base)
    return { parent: { image: fromImage, login }, resources: base.resources }
  }
  const found = await findOrInstall({ text: fromTemplate, field: 'fromTemplate', ...by })
  if (found.snapshotId === undefined) return toParent(found)
  throw new Fault(
    'invalid',
    'parent_is_snapshot',
    `${fromTemplate} is a snapshot of a sandbox, and templates cannot be built from snapshots: build from the template of that sandbox`,
  )
}

/** Default image of the published clients; stands for the template `base`. */
const baseImage =
  /^(?:(?:docker\.io|index\.docker\.io|registry-1\.docker\.io)\/)?e2bdev\/base(?::[\w.-]+)?$/

function toParent({ nodeTemplateId, resources }: Template): Parent {
  return { parent: { nodeTemplateId }, resources }
}

/** Uses an empty namespace: a team may have its own template named `base`. */
async function findBase(templates: Templates): Promise<Template> {
  const base = await templates.locate({ namespace: '', name: 'base' }, '')
  const build = base && (await templates.findBuild(base.id))
  if (build) return build
  throw new Error('the installation has no template `base`: restart the server, which builds it')
}
