import { checkBuild, finalSetup } from '../../domain/builds/build.ts'
import type { BuildRequest } from '../../domain/builds/build.ts'
import { BuildError } from '../../domain/builds/build-error.ts'
import { planImageSetup, planSteps } from '../../domain/builds/build-steps.ts'
import type { Images } from '../../domain/builds/image.ts'
import { defaultSetup } from '../../domain/sandboxes/setup.ts'
import type { Setup } from '../../domain/sandboxes/setup.ts'
import type { TemplateFiles } from '../lifecycle/cells.ts'
import { asBuildError } from './build-errors.ts'
import { createBuildLayer } from './build-layer.ts'
import type { BuildLayerPorts } from './build-layer.ts'
import type { BuildProgress } from './build-progress.ts'
import { createFinalize } from './finalize.ts'
import type { FinalizePorts } from './finalize.ts'
import { createImageLayers } from './image-layers.ts'

/** Builds a template from a parent template or an image. Each step runs in its own cell, whose disk becomes a layer. */
export type BuildTemplate = (request: BuildRequest, progress: BuildProgress) => Promise<Built>

export interface Built {
  /** Bytes on disk of the template's own layers. */
  readonly sizeBytes: number
}

export interface BuildPorts extends BuildLayerPorts, FinalizePorts {
  readonly cells: BuildLayerPorts['cells'] & FinalizePorts['cells']
  findTemplate(templateId: string): TemplateFiles | undefined
  readonly templates: {
    add(template: {
      readonly templateId: string
      readonly layer: string
      readonly setup: Setup
    }): Promise<void>
  }
  readonly images: Images
  discardPrototypes(templateId: string): Promise<void>
}

export function createBuildTemplate(ports: BuildPorts): BuildTemplate {
  const imageLayers = createImageLayers(ports)
  const buildLayer = createBuildLayer(ports)
  const finalize = createFinalize(ports)

  async function prepareParent(
    { parent, shape, ownerId }: BuildRequest,
    progress: BuildProgress,
  ): Promise<TemplateFiles> {
    const name = typeof parent === 'string' ? parent : parent.reference
    await progress.note('base', 'info', `[base] FROM ${name}`)
    if (typeof parent === 'string') {
      const found = ports.findTemplate(parent)
      if (found) return found
      throw new BuildError('base', `The template ${parent} no longer exists. Choose another one.`)
    }
    const fail = asBuildError('base', progress.signal)
    const { layer, setup } = await imageLayers({ image: parent, ownerId }, progress).catch(fail)
    const planned = { step: 'base', title: 'adding the user', ...planImageSetup(setup) }
    const request = { shape, ownerId, planned, below: layer, label: '[base]' }
    return { layer: await buildLayer(request, progress), setup }
  }

  return async (request, progress) => {
    checkBuild(request)
    const { shape, ownerId } = request
    const startedMs = ports.nowMs()
    const parent = await prepareParent(request, progress)
    const parentSetup = parent.setup ?? defaultSetup
    const steps = planSteps(request, parentSetup)
    const template =
      typeof request.parent === 'string' ? { templateId: request.parent, files: parent } : undefined
    let { layer } = parent
    for (const planned of steps) {
      const label = `[builder ${planned.step}/${steps.length}]`
      const step = { shape, ownerId, planned, below: layer, parent: template, label }
      layer = await buildLayer(step, progress)
    }
    const setup = finalSetup(request, parentSetup, steps.at(-1))
    const { templateId } = shape
    try {
      await finalize(shape, { layer, setup }, progress)
      progress.signal.throwIfAborted()
      await ports.templates.add({ templateId, layer, setup })
    } catch (error) {
      await ports.discardPrototypes(templateId)
      throw error
    }
    const seconds = ((ports.nowMs() - startedMs) / 1000).toFixed(1)
    await progress.note('finalize', 'info', `Build finished, took ${seconds}s`)
    return { sizeBytes: ports.layers.sizeBytes(layer) - ports.layers.sizeBytes(parent.layer) }
  }
}
