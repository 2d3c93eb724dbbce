/**
 * Template `base`: Debian 12 with common tools, from Debian packages and without an image registry. Built once per
 * recipe and stored as a layer named after its content.
 */
import { mkdir, readFile, realpath } from 'node:fs/promises'
import { arch, versions } from 'node:process'
import { join } from 'node:path'
import { writeFileAtomic } from '@atoll/kit/atomic-file'
import { randomLabel } from '@atoll/kit/id'
import { z } from 'zod'
import { bootstrapDebian } from './bootstrap.ts'
import { debianSources } from './debian-sources.ts'
import { lockFolder } from './folder-lock.ts'
import { fetchNpm, furnish } from './complete-base.ts'
import { commitLayer, exists, sweepBuilds } from './layer.ts'
import { baseRecipe, recipeHash } from './recipe.ts'

export interface BaseTemplate {
  readonly layerDir: string
  readonly layerId: string
}

export interface BaseTemplateOptions {
  readonly layersDir: string
  /** Called with the current step and the completed fraction, 0 to 1. */
  readonly progress: (label: string, fraction: number) => void
  readonly signal?: AbortSignal
}

const buildPrefix = '.tmp-base-'

/** Returns the layer of `base`; builds it when the recipe has changed. */
export async function ensureBaseTemplate(options: BaseTemplateOptions): Promise<BaseTemplate> {
  await mkdir(options.layersDir, { recursive: true })
  const layersDir = await realpath(options.layersDir)
  const wanted = recipeHash(baseRecipe, versions.node, arch)
  const ready = await findBuilt(layersDir, wanted)
  if (ready) return ready
  await using _lock = await lockFolder(layersDir, {
    onWait: () => options.progress('waiting for another build', 0),
    signal: options.signal,
  })
  const builtMeanwhile = await findBuilt(layersDir, wanted)
  if (builtMeanwhile) return builtMeanwhile
  await sweepBuilds(layersDir, buildPrefix)
  const layerId = await build({ ...options, layersDir })
  const record = { layer: layerId, recipeHash: wanted, createdAt: new Date().toISOString() }
  await writeFileAtomic(join(layersDir, 'base.json'), `${JSON.stringify(record, null, 2)}\n`)
  return { layerId, layerDir: join(layersDir, layerId) }
}

async function findBuilt(layersDir: string, wanted: string): Promise<BaseTemplate | undefined> {
  const text = await readFile(join(layersDir, 'base.json'), 'utf8').catch(() => '{}')
  const record = parseRecord(text)
  if (record.recipeHash !== wanted || !record.layer) return undefined
  const layerDir = join(layersDir, record.layer)
  return (await exists(layerDir)) ? { layerId: record.layer, layerDir } : undefined
}

/**
 * Parses the record. A damaged record only costs a rebuild: layers are never removed, and sandboxes record their own
 * layer.
 */
function parseRecord(text: string): { readonly layer?: string; readonly recipeHash?: string } {
  try {
    return BuiltRecord.parse(JSON.parse(text))
  } catch {
    return {}
  }
}

const BuiltRecord = z.object({
  layer: z.string().exactOptional(),
  recipeHash: z.string().exactOptional(),
})

async function build({ layersDir, progress, signal }: BaseTemplateOptions): Promise<string> {
  const work = join(layersDir, `${buildPrefix}${randomLabel(8)}`)
  const root = join(work, 'root')
  const npmPrefix = join(work, 'npm')
  await mkdir(npmPrefix, { recursive: true, mode: 0o700 })
  try {
    progress('installing Debian packages', 0)
    await settleAll([
      bootstrapDebian({
        ...baseRecipe,
        root,
        sources: await debianSources(baseRecipe.suite),
        progress: (fraction) => progress('installing Debian packages', fraction * 0.9),
        signal,
      }),
      fetchNpm(npmPrefix, baseRecipe.npm, signal),
    ])
    progress('adding Node.js and the user', 0.9)
    await furnish(root, { nodeBinary: process.execPath, npmPrefix, user: baseRecipe.user })
    signal?.throwIfAborted()
    progress('sealing the layer', 0.95)
    const layerId = await commitLayer(layersDir, root)
    progress('done', 1)
    return layerId
  } finally {
    await sweepBuilds(layersDir, buildPrefix)
  }
}

/** Waits for all tasks before it throws the first failure, so that no task writes during cleanup. */
async function settleAll(tasks: ReadonlyArray<Promise<unknown>>): Promise<void> {
  const results = await Promise.allSettled(tasks)
  for (const result of results) if (result.status === 'rejected') throw result.reason
}
