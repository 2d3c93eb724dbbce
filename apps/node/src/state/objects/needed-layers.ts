import { Fault } from '@atoll/kit/fault'
import type { Bundles } from '@atoll/objects/bundles'
import { readFacts } from '@atoll/objects/manifest'
import type { Manifest } from '@atoll/objects/manifest'
import { z } from 'zod'
import { LayerFacts } from './object-layers.ts'

/** Finds the layers and builds of envd that bundles in the object store need. */
export interface NeededLayers {
  /**
   * Returns the paths of all that templates, snapshots and paused sandboxes in the store need. Throws when one manifest
   * cannot be read: it may need any of them.
   */
  find(signal: AbortSignal): Promise<ReadonlySet<string>>
}

const Made = z.object({ layer: z.string() })
const Needs = z.object({ envd: z.string() })
/** Facts by the prefix of their bundles, and the paths that they need. */
const kinds = [
  [
    'templates/',
    z.object({ template: Made }).transform(({ template }) => [`layers/${template.layer}`]),
  ],
  [
    'snapshots/',
    z
      .object({ snapshot: Made, needs: Needs })
      .transform(({ snapshot, needs }) => [`layers/${snapshot.layer}`, `envd/${needs.envd}`]),
  ],
  [
    'sandboxes/',
    z
      .object({ record: Made, needs: Needs })
      .transform(({ record, needs }) => [`layers/${record.layer}`, `envd/${needs.envd}`]),
  ],
] as const

type Parse = (manifest: Manifest) => readonly string[]

/** Manifests are small: a pass over many of them waits for answers of the store. */
const readsAtOnce = 16

export function createNeededLayers(bundles: Pick<Bundles, 'find' | 'listPaths'>): NeededLayers {
  /** Needs by path. A path that is written again has the same ones, so each manifest is read once. */
  let known = new Map<string, readonly string[]>()

  async function read(
    path: string,
    parse: Parse,
    signal: AbortSignal,
  ): Promise<readonly string[] | undefined> {
    const found = known.get(path)
    if (found) return found
    const manifest = await bundles.find(path, signal)
    const needs = manifest && parse(manifest)
    if (needs) known.set(path, needs)
    return needs
  }

  async function readLayer(path: string, signal: AbortSignal): Promise<readonly string[]> {
    if (!path.startsWith('layers/')) return []
    const below = await read(path, belowOf, signal)
    // The layers below this one are unknown.
    if (!below) throw missingLayer(path)
    return below
  }

  return {
    async find(signal) {
      const needed = new Set<string>()
      const seen = new Set<string>()
      const add = async (path: string): Promise<void> => {
        if (needed.has(path)) return
        needed.add(path)
        for (const below of await readLayer(path, signal)) await add(below)
      }
      for (const [prefix, schema] of kinds) {
        const parse: Parse = (manifest) => readFacts(manifest, schema)
        await forEachPath(await bundles.listPaths(prefix, signal), async (path) => {
          seen.add(path)
          // Without a manifest: not finished, or removed since the list was read.
          for (const one of (await read(path, parse, signal)) ?? []) await add(one)
        })
      }
      known = new Map([...known].filter(([path]) => seen.has(path) || needed.has(path)))
      return needed
    },
  }
}

/** Reads several at a time, and begins no more after the first failure. */
async function forEachPath(
  paths: readonly string[],
  work: (path: string) => Promise<void>,
): Promise<void> {
  const waiting = [...paths]
  const worker = async () => {
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) await work(path)
  }
  try {
    await Promise.all(Array.from({ length: readsAtOnce }, worker))
  } finally {
    waiting.length = 0
  }
}

function belowOf(manifest: Manifest): readonly string[] {
  const layer = readFacts(manifest, LayerFacts)
  return layer.kind === 'step' && layer.below !== undefined ? [`layers/${layer.below}`] : []
}

function missingLayer(path: string): Fault {
  return new Fault(
    'not_found',
    'object_missing',
    `The object store has no manifest of ${path}, which it needs. Ask an operator to restore it.`,
  )
}
