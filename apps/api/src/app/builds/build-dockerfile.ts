import { parseDockerfile } from '@atoll/kit/dockerfile/parse'
import type { Recipe } from '../../domain/builds/recipe.ts'
import type { TemplateStore } from '../../domain/template.ts'
import { toRecipe } from '../../domain/builds/dockerfile-recipe.ts'
import { findOwnTemplate } from '../templates/own-template.ts'
import type { FindOrigin } from './find-origin.ts'
import type { BuildRequest, RequestBuild } from './request-build.ts'
import type { StartBuild } from './start-build.ts'

export interface DockerfileRequest extends Omit<BuildRequest, 'tags' | 'diskSizeMb'> {
  readonly dockerfile: string
  readonly startCommand: string | undefined
  readonly readyCommand: string | undefined
}

/** Requests and starts a build in one call: a Dockerfile is a complete recipe. */
export type BuildDockerfile = (
  request: DockerfileRequest,
) => Promise<Awaited<ReturnType<RequestBuild>>>

export function createBuildDockerfile(ports: {
  readonly templates: Pick<TemplateStore, 'locate'>
  readonly findOrigin: FindOrigin
  readonly request: RequestBuild
  readonly start: StartBuild
  /** Throws a fault when the node accepts no new work. */
  readonly checkNode: () => Promise<void>
}): BuildDockerfile {
  const { templates, findOrigin, request, start, checkNode } = ports
  return async ({ dockerfile, startCommand, readyCommand, of: target, ...wanted }) => {
    const { teamId } = wanted
    const of = target && 'templateId' in target ? await resolve(templates, target, teamId) : target
    const parsed = parseDockerfile(dockerfile, { hasFiles: false })
    const origin = await findOrigin(parsed.from, { teamId, target: of })
    const recipe: Recipe = {
      ...toRecipe(parsed, origin),
      ...(startCommand && { startCommand }),
      ...(readyCommand && { readyCommand }),
    }
    // Check before the record exists: no client would start the build later.
    await checkNode()
    const build = await request({ ...wanted, of, tags: [], diskSizeMb: origin.diskSizeMb })
    await start({ teamId, templateId: build.templateId, buildId: build.id }, recipe)
    return build
  }
}

async function resolve(
  templates: Pick<TemplateStore, 'locate'>,
  { templateId }: { readonly templateId: string },
  teamId: string,
): Promise<{ readonly templateId: string }> {
  return { templateId: (await findOwnTemplate(templates, templateId, teamId)).id }
}
