import { join } from 'node:path'
import type { TemplateFiles as Files } from '../app/lifecycle/cells.ts'
import type { Disks } from '../domain/host/disks.ts'
import type { Installation } from '../domain/host/installation.ts'
import type { ShiftedLayers } from '../linux/mounts/shifted-layers.ts'
import { openBuildFiles } from '../state/build-files.ts'
import type { BuildFiles } from '../state/build-files.ts'
import { openBuiltTemplates } from '../state/built-templates.ts'
import type { BuiltTemplates } from '../state/built-templates.ts'
import { openStepLayers } from '../state/step-layers.ts'
import type { StepLayers } from '../state/step-layers.ts'
import { codeInterpreter } from '../template/code-interpreter.ts'
import { desktop } from '../template/desktop.ts'
import { openCatalogueFiles } from './catalogue-files.ts'
import type { CatalogueFiles } from './catalogue-files.ts'

/** Templates of the catalogue. */
export const catalogue = [codeInterpreter, desktop]

/** Templates of this node and their files: the built-in templates and those built here. */
export interface TemplateFiles {
  find(templateId: string): Files | undefined
  /** Does what `find` does, but throws a fault when the record cannot be read. */
  findReadable(templateId: string): Files | undefined
  /** Folders of a layer and all layers below, lowest first. */
  chain(layer: string): readonly string[]
  readonly templates: BuiltTemplates
  readonly catalogue: CatalogueFiles
  readonly layers: StepLayers
  readonly archives: BuildFiles
  readonly shifted: ShiftedLayers
  /** Bytes on disk of the layers of built templates, each counted once, without those of built-in templates. */
  measure(templateIds: readonly string[]): number
  /**
   * Removes layers and archives that neither a template nor one of these layers needs and that no recent build has
   * used.
   */
  sweep(usedLayers: readonly string[]): Promise<void>
}

export async function openTemplateFiles(parts: {
  readonly installation: Installation
  readonly layersDir: string
  /** Name of the built-in template's layer. */
  readonly layer: string
  readonly shifted: ShiftedLayers
  readonly disks: Pick<Disks, 'reserveSpace'>
  removeFolder(dir: string): Promise<void>
  flush(dir: string): Promise<void>
}): Promise<TemplateFiles> {
  const { dataDir } = parts.installation
  const base: Files = { layer: parts.layer }
  const templates = await openBuiltTemplates(join(dataDir, 'templates'))
  const layers = await openStepLayers({
    dir: join(dataDir, 'steps'),
    baseDir: (name) => join(parts.layersDir, name),
    nowMs: Date.now,
    removeFolder: parts.removeFolder,
    flush: parts.flush,
    onRemove: parts.shifted.release,
  })
  const archives = await openBuildFiles(join(dataDir, 'build-files'), parts.disks)
  const { layersDir, disks } = parts
  const builtIn = await openCatalogueFiles({ recipes: catalogue, layersDir, layers, disks })
  const findBuiltIn = (templateId: string) =>
    templateId === 'base' ? base : builtIn.find(templateId)
  return {
    find: (templateId) => findBuiltIn(templateId) ?? templates.find(templateId),
    findReadable: (templateId) => findBuiltIn(templateId) ?? templates.findReadable(templateId),
    chain: layers.chain,
    templates,
    catalogue: builtIn,
    layers,
    archives,
    shifted: parts.shifted,
    measure(templateIds) {
      const found = templateIds.map((id) => templates.find(id)?.layer)
      const tops = found.filter((layer) => layer !== undefined)
      return layers.sizeOfAll(tops, builtIn.usedLayers())
    },
    async sweep(usedLayers) {
      const used = new Set([
        ...usedLayers,
        ...builtIn.usedLayers(),
        ...templates.list().map(({ layer }) => layer),
      ])
      await layers.sweep(used, Date.now())
      await archives.sweep(Date.now())
    },
  }
}
