import { createHash } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import type { TemplateFiles as Files } from '../app/lifecycle/cells.ts'
import type { Disks } from '../domain/host/disks.ts'
import type { StepLayers } from '../state/step-layers.ts'
import type { CatalogueRecipe } from '../template/catalogue.ts'
import { ensureDebianLayer, findDebianLayer, sweepDeadBuilds } from '../template/debian-layer.ts'
import type { DebianLayer } from '../template/debian-layer.ts'
import { copyProgram, hashProgram } from '../template/program-files.ts'

/** Files of the catalogue's templates on this node. */
export interface CatalogueFiles {
  /** Returns undefined for a template that is not installed. */
  find(templateId: string): Files | undefined
  /** Topmost layers of installed templates. */
  usedLayers(): string[]
  /** Builds what is missing. Later calls return at once. */
  prepare(
    recipe: CatalogueRecipe,
    progress: (label: string, fraction: number) => void,
    signal: AbortSignal,
  ): Promise<Files>
}

export async function openCatalogueFiles(parts: {
  readonly recipes: readonly CatalogueRecipe[]
  readonly layersDir: string
  readonly layers: Pick<StepLayers, 'find' | 'add'>
  readonly disks: Pick<Disks, 'reserveSpace'>
}): Promise<CatalogueFiles> {
  const { layersDir, layers } = parts
  const installed = new Map<string, Files>()

  /** Adds our programs on top of the Debian layer. A new release of them needs no new Debian layer. */
  async function complete(recipe: CatalogueRecipe, debian: DebianLayer): Promise<Files> {
    const { program, setup, templateId } = recipe
    const key = createHash('sha256')
      .update(JSON.stringify(['program', debian.layerId, await hashProgram(program)]))
      .digest('hex')
    const layer =
      (await layers.find(key)) ??
      (await layers.add({ below: debian.layerId, key }, (dir) => copyProgram(program, dir)))
    const files = { layer, setup }
    installed.set(templateId, files)
    return files
  }

  await mkdir(layersDir, { recursive: true })
  for (const recipe of parts.recipes) {
    await sweepDeadBuilds(recipe.debian, layersDir)
    const debian = await findDebianLayer(recipe.debian, layersDir)
    // A full disk must not prevent the start: the template counts as not installed, and an install reports why.
    if (debian) await complete(recipe, debian).catch(() => {})
  }

  return {
    find: (templateId) => installed.get(templateId),
    usedLayers: () => [...installed.values()].map(({ layer }) => layer),
    async prepare(recipe, progress, signal) {
      const known = installed.get(recipe.templateId)
      if (known) return known
      using _room = parts.disks.reserveSpace(recipe.sizeBytes, `installing ${recipe.name}`)
      const options = { layersDir, progress, signal }
      return complete(recipe, await ensureDebianLayer(recipe.debian, options))
    },
  }
}
