import { Fault } from '@atoll/kit/fault'
import type { DockerfileOrigin } from '../../domain/builds/dockerfile-recipe.ts'
import { publishedTemplate } from '../../domain/builds/published-image.ts'
import { mayUse, parseReference } from '../../domain/template.ts'
import type {
  LocatedTemplate,
  Resources,
  TemplateReference,
  TemplateStore,
} from '../../domain/template.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { parentIsSnapshot } from './find-parent.ts'
import type { BuildRequest } from './request-build.ts'

export interface FoundOrigin extends DockerfileOrigin {
  /** Disk size of the parent. */
  readonly diskSizeMb: number
}

/**
 * Resolves FROM of a Dockerfile: a template that the team may use, else one of the catalogue, else an image of a
 * registry. Templates that the team may not use are treated as absent.
 */
export type FindOrigin = (
  from: string,
  by: { readonly teamId: string; readonly target: BuildRequest['of'] },
) => Promise<FoundOrigin>

interface OriginPorts {
  readonly templates: Pick<TemplateStore, 'locate' | 'findBuild'>
  readonly catalogue: Pick<Catalogue, 'find'>
  /** Resources of `base`, which templates of the catalogue and images start with. */
  readonly base: Resources
}

export function createFindOrigin(ports: OriginPorts): FindOrigin {
  const { templates, catalogue, base } = ports
  const { diskSizeMb } = base
  const ofInstallation = (name: string): FoundOrigin => ({
    parent: { fromImage: `e2bdev/${name}` },
    note: `${name} is a template of this installation`,
    keepsUserAndDirectory: false,
    diskSizeMb,
  })
  const hasTemplate = async (name: string): Promise<boolean> =>
    name === 'base' || (await catalogue.find(name)) !== undefined

  return async (from, { teamId, target }) => {
    const published = from === 'base' ? undefined : publishedTemplate(from)
    if (published !== undefined && (await hasTemplate(published))) return ofInstallation(published)
    const reference = readReference(from)
    const located = reference && (await locate(templates, reference, teamId, target))
    const found = located && (await toOrigin(templates, { from, reference, located, teamId }))
    if (found) return found
    const isBare = reference?.namespace === undefined && reference?.tag === undefined
    if (reference && isBare && (await hasTemplate(reference.name))) {
      return ofInstallation(reference.name)
    }
    const note = `${from} is an image: there is no template of this name that the team may use`
    const parent = { fromImage: from }
    return { parent, note: reference && note, keepsUserAndDirectory: false, diskSizeMb }
  }
}

/** Returns undefined for images that cannot be the name of a template, such as `ghcr.io/some/image`. */
function readReference(from: string): TemplateReference | undefined {
  try {
    return parseReference(from, 'FROM')
  } catch {
    return undefined
  }
}

/**
 * Finds the template that the name means. A name alone never means the template that is being built: a second build of
 * the template `node` from `FROM node` starts from the image again.
 */
async function locate(
  templates: OriginPorts['templates'],
  reference: TemplateReference,
  teamId: string,
  target: BuildRequest['of'],
): Promise<LocatedTemplate | undefined> {
  const found = await templates.locate(reference, teamId)
  const isNameAlone = reference.namespace === undefined && reference.tag === undefined
  const own = target && readReference('name' in target ? target.name : target.templateId)
  const isOwn =
    isNameAlone && own && found && (await templates.locate(own, teamId))?.id === found.id
  return isOwn ? templates.locate({ namespace: '', name: reference.name }, teamId) : found
}

async function toOrigin(
  templates: OriginPorts['templates'],
  what: {
    readonly from: string
    readonly reference: TemplateReference
    readonly located: LocatedTemplate
    readonly teamId: string
  },
): Promise<FoundOrigin | undefined> {
  const { from, reference, located, teamId } = what
  if (!mayUse(located, teamId)) return undefined
  if (located.isSnapshot) throw parentIsSnapshot(from)
  const { namespace, tag } = reference
  const build = await templates.findBuild(located.id, tag)
  if (!build) {
    // A tag of an image, such as `python:3.12`, where the team has a template `python` without this tag.
    if (tag !== undefined && namespace === undefined) return undefined
    throw new Fault(
      'not_found',
      'template_not_found',
      `FROM ${from}: the template has no ready build with the tag ${tag ?? 'default'}; build it first`,
    )
  }
  return {
    parent: { fromTemplate: `${build.id}:${build.buildId}` },
    note: `${from} is the template ${build.id}`,
    keepsUserAndDirectory: located.teamId !== undefined,
    diskSizeMb: build.resources.diskSizeMb,
  }
}
