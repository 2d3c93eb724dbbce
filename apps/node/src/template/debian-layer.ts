/**
 * Root file systems from Debian packages, without an image registry. Each is built once per recipe and stored as a layer
 * named after its content.
 */
import { mkdir, readFile, readdir, realpath } from 'node:fs/promises'
import { arch, versions } from 'node:process'
import { join } from 'node:path'
import { writeFileAtomic } from '@atoll/kit/atomic-file'
import { randomLabel } from '@atoll/kit/id'
import { z } from 'zod'
import { bootstrapDebian } from './bootstrap.ts'
import { debianSources } from './debian-sources.ts'
import { lockFolder, tryLockFolder } from './folder-lock.ts'
import { fetchNpm, customizeDebian } from './customize-debian.ts'
import { commitLayer, exists, sweepBuilds } from './layer.ts'
import { recipeHash } from './recipe.ts'
import type { DebianRecipe } from './recipe.ts'

export interface DebianLayer {
  readonly layerDir: string
  readonly layerId: string
}

export interface DebianLayerOptions {
  readonly layersDir: string
  /** Called with the current step and the completed fraction, 0 to 1. */
  readonly progress: (label: string, fraction: number) => void
  readonly signal?: AbortSignal | undefined
}

/** Returns the layer of a recipe; builds it when there is none. */
export async function ensureDebianLayer(
  recipe: DebianRecipe,
  options: DebianLayerOptions,
): Promise<DebianLayer> {
  await mkdir(options.layersDir, { recursive: true })
  const layersDir = await realpath(options.layersDir)
  const ready = await findDebianLayer(recipe, layersDir)
  if (ready) return ready
  await using _lock = await lockFolder(layersDir, {
    file: lockFile(recipe),
    onWait: () => options.progress('waiting for another build', 0),
    signal: options.signal,
  })
  const builtMeanwhile = await findDebianLayer(recipe, layersDir)
  if (builtMeanwhile) return builtMeanwhile
  await sweepBuilds(layersDir, workPrefix(recipe))
  const layerId = await build(recipe, { ...options, layersDir })
  const record = { layer: layerId, createdAt: new Date().toISOString() }
  await writeFileAtomic(recordPath(recipe, layersDir), `${JSON.stringify(record, null, 2)}\n`)
  return { layerId, layerDir: join(layersDir, layerId) }
}

export async function findDebianLayer(
  recipe: DebianRecipe,
  layersDir: string,
): Promise<DebianLayer | undefined> {
  const text = await readFile(recordPath(recipe, layersDir), 'utf8').catch(() => '{}')
  const { layer } = parseRecord(text)
  if (!layer) return undefined
  const layerDir = join(layersDir, layer)
  return (await exists(layerDir)) ? { layerId: layer, layerDir } : undefined
}

/** Removes the work folders of builders that died. Leaves those of a builder that is alive. */
export async function sweepDeadBuilds(recipe: DebianRecipe, layersDir: string): Promise<void> {
  const names = await readdir(layersDir).catch(() => [])
  if (!names.some((name) => name.startsWith(workPrefix(recipe)))) return
  await using lock = await tryLockFolder(layersDir, lockFile(recipe))
  if (lock) await sweepBuilds(layersDir, workPrefix(recipe))
}

function workPrefix({ name }: DebianRecipe): string {
  return `.tmp-${name}-`
}

function lockFile({ name }: DebianRecipe): string {
  return name === 'base' ? '.lock' : `.lock-${name}`
}

/** One record per recipe: releases that share the folder keep their own layers. */
function recordPath(recipe: DebianRecipe, layersDir: string): string {
  const { expectedSteps: _isNotContent, ...content } = recipe
  const hash = recipeHash(content, versions.node, arch)
  return join(layersDir, `${recipe.name}-${hash.slice(0, 16)}.json`)
}

/**
 * Parses the record. A damaged record only costs a rebuild: layers are never removed, and sandboxes record their own
 * layer.
 */
function parseRecord(text: string): { readonly layer?: string } {
  try {
    return BuiltRecord.parse(JSON.parse(text))
  } catch {
    return {}
  }
}

const BuiltRecord = z.object({ layer: z.string().exactOptional() })

async function build(
  recipe: DebianRecipe,
  { layersDir, progress, signal }: DebianLayerOptions,
): Promise<string> {
  const work = join(layersDir, `${workPrefix(recipe)}${randomLabel(8)}`)
  const root = join(work, 'root')
  const npmPrefix = join(work, 'npm')
  await mkdir(npmPrefix, { recursive: true, mode: 0o700 })
  try {
    progress('installing Debian packages', 0)
    await settleAll([
      bootstrapDebian({
        ...recipe,
        root,
        sources: await debianSources(recipe.suite),
        progress: (fraction) => progress('installing Debian packages', fraction * 0.9),
        signal,
      }),
      fetchNpm(npmPrefix, recipe.npm, signal),
    ])
    progress('adding Node.js and the user', 0.9)
    const { user, check } = recipe
    await customizeDebian(root, { nodeBinary: process.execPath, npmPrefix, user, check })
    signal?.throwIfAborted()
    progress('sealing the layer', 0.95)
    const layerId = await commitLayer(layersDir, root)
    progress('done', 1)
    return layerId
  } finally {
    await sweepBuilds(layersDir, workPrefix(recipe))
  }
}

/** Waits for all tasks before it throws the first failure, so that no task writes during cleanup. */
async function settleAll(tasks: ReadonlyArray<Promise<unknown>>): Promise<void> {
  const results = await Promise.allSettled(tasks)
  for (const result of results) if (result.status === 'rejected') throw result.reason
}
