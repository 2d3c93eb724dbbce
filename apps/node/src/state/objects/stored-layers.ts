import type { Bundles } from '@atoll/objects/bundles'
import { readFacts } from '@atoll/objects/manifest'
import type { Manifest } from '@atoll/objects/manifest'
import { isEnvdPath } from './object-envds.ts'
import { isLayerPath, LayerFacts } from './object-layers.ts'

/** Bundles that a snapshot, a template or a paused sandbox in the object store needs besides its own. */
export interface StoredNeeds {
  readonly layer: string
  /** Reference of the build of envd. Absent: any build does. */
  readonly envd?: string
}

/**
 * Returns a function that asks the object store for all layers and the build of envd that a bundle in the store needs. Unlike
 * `NeedsStore.areStored`, it does not need the layers on this node. It claims nothing: a bundle in the store keeps what it needs
 * from being removed. It remembers the answers, so use it for one request only.
 */
export function createStoredLayers(
  bundles: Pick<Bundles, 'findWhole'>,
): (needs: StoredNeeds, signal: AbortSignal) => Promise<boolean> {
  const asked = new Map<string, Promise<Manifest | undefined>>()
  const find = (path: string, signal: AbortSignal) => {
    const finding = asked.get(path) ?? bundles.findWhole(path, signal)
    asked.set(path, finding)
    return finding
  }

  async function hasLayers(top: string, signal: AbortSignal): Promise<boolean> {
    for (let layer: string | undefined = top; layer !== undefined;) {
      const path = `layers/${layer}`
      const manifest = isLayerPath(path) ? await find(path, signal) : undefined
      if (!manifest?.parts.some(({ name }) => name === 'files')) return false
      layer = belowOf(manifest)
    }
    return true
  }

  return async ({ layer, envd }, signal) => {
    if (!(await hasLayers(layer, signal))) return false
    if (envd === undefined) return true
    const path = `envd/${envd}`
    return isEnvdPath(path) && (await find(path, signal)) !== undefined
  }
}

function belowOf(manifest: Manifest): string | undefined {
  const layer = readFacts(manifest, LayerFacts)
  return layer.kind === 'step' ? layer.below : undefined
}
