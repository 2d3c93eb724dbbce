import { ensureDebianLayer } from './debian-layer.ts'
import type { DebianLayer, DebianLayerOptions } from './debian-layer.ts'
import { baseRecipe } from './recipe.ts'

/** Returns the layer of the template `base`, which every installation has; builds it when the recipe has changed. */
export function ensureBaseTemplate(options: DebianLayerOptions): Promise<DebianLayer> {
  return ensureDebianLayer(baseRecipe, options)
}
