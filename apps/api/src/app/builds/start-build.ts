import { Fault } from '@atoll/kit/fault'
import type { BuildStore } from '../../domain/builds/build.ts'
import type { Recipe } from '../../domain/builds/recipe.ts'
import type { TemplateStore } from '../../domain/template.ts'
import { notWaiting } from './builder.ts'
import type { Builder } from './builder.ts'
import { findOwnTemplate } from '../templates/own-template.ts'

/** Starts a waiting build, which then runs in the background. */
export type StartBuild = (
  of: { readonly teamId: string; readonly templateId: string; readonly buildId: string },
  recipe: Recipe,
) => Promise<void>

export function createStartBuild(ports: {
  readonly builds: BuildStore
  readonly templates: TemplateStore
  readonly builder: Builder
  /** Throws a fault when the node accepts no new work. */
  readonly checkNode: () => Promise<void>
  /** Called after the start, which may have cancelled other builds. */
  readonly onStarted: () => void
}): StartBuild {
  const { builds, templates, builder, checkNode, onStarted } = ports
  return async ({ teamId, templateId, buildId }, recipe) => {
    const template = await findOwnTemplate(templates, templateId, teamId)
    const build = await builds.find(buildId)
    if (build?.templateId !== template.id) {
      throw new Fault(
        'not_found',
        'build_not_found',
        `Template ${templateId} has no build ${buildId}`,
      )
    }
    if (build.status !== 'waiting') throw notWaiting(buildId)
    checkOrigin(recipe)
    await checkNode()
    await builder.start({ build, teamId, recipe })
    onStarted()
  }
}

/** Throws a fault but leaves the build waiting, so that a corrected request can start it. */
function checkOrigin({ fromImage, fromTemplate }: Recipe): void {
  if ((fromImage === undefined) !== (fromTemplate === undefined)) return
  throw new Fault(
    'invalid',
    'invalid_origin',
    'Send exactly one of `fromTemplate` and `fromImage`, the source of the template',
  )
}
