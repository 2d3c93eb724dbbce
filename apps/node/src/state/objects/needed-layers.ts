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

export function createNeededLayers(bundles: Pick<Bundles, 'find' | 'listPaths'>): NeededLayers {
  /** Needs by path. A path that is written again has the same ones, so each manifest is read once. */
  let known = new Map<string, readonly string[]>()

  async function read(
    path: string,
    parse: (manifest: Manifest) => readonly string[],
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    const found = known.get(path)
    if (found) return found
    const manifest = await bundles.find(path, signal)
    // Not finished, or removed since the list was read.
    if (!manifest) return []
    const needs = parse(manifest)
    known.set(path, needs)
    return needs
  }

  return {
    async find(signal) {
      const needed = new Set<string>()
      const seen = new Set<string>()
      const add = async (path: string): Promise<void> => {
        if (needed.has(path)) return
        needed.add(path)
        if (!path.startsWith('layers/')) return
        for (const below of await read(path, belowOf, signal)) await add(below)
      }
      for (const [prefix, schema] of kinds) {
        for (const path of await bundles.listPaths(prefix, signal)) {
          seen.add(path)
          const needs = await read(path, (manifest) => readFacts(manifest, schema), signal)
          for (const one of needs) await add(one)
        }
      }
      known = new Map([...known].filter(([path]) => seen.has(path) || needed.has(path)))
      return needed
    },
  }
}

function belowOf(manifest: Manifest): readonly string[] {
  const layer = readFacts(manifest, LayerFacts)
  return layer.kind === 'step' && layer.below !== undefined ? [`layers/${layer.below}`] : []
}
