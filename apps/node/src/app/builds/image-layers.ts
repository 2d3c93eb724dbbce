import { BuildError } from '../../domain/builds/build-error.ts'
import { imageKey } from '../../domain/builds/image.ts'
import type { Image, Images, ImageSource } from '../../domain/builds/image.ts'
import { defaultSetup } from '../../domain/sandboxes/setup.ts'
import type { Setup } from '../../domain/sandboxes/setup.ts'
import type { BuildLayers } from './build-layer.ts'
import { maxLayers } from './build-progress.ts'
import type { BuildProgress } from './build-progress.ts'

/** Imports the layers of an image. Pulls only when layers are missing. */
export type ImageLayers = (
  request: { readonly image: ImageSource; readonly ownerId: string },
  progress: BuildProgress,
) => Promise<{ readonly layer: string; readonly setup: Setup }>

export function createImageLayers({
  images,
  layers,
}: {
  readonly images: Images
  readonly layers: Pick<BuildLayers, 'find' | 'add'>
}): ImageLayers {
  return async ({ image: source, ownerId }, { note, signal }) => {
    const image = await images.inspect(source, signal)
    checkLayerCount(image)
    // Layers pulled with credentials are shared only within their owner: knowing their digests is not enough to get
    // them.
    const owner = source.username === undefined ? undefined : ownerId
    const missing = [...image.layers]
    let below: string | undefined
    for (const digest of image.layers) {
      const known = await layers.find(imageKey(digest, { below, owner }))
      if (known === undefined) break
      missing.shift()
      below = known
    }
    if (missing.length > 0) {
      await note('base', 'info', '[base] pulling the image')
      await using pulled = await images.pull(source, image, signal)
      for (const digest of missing) {
        signal.throwIfAborted()
        const key = imageKey(digest, { below, owner })
        below = await layers.add({ below, key }, (dir) => pulled.unpack(digest, dir))
      }
    } else {
      await note('base', 'info', '[base] the image is already on this node')
    }
    if (below === undefined)
      throw new BuildError('base', 'The image has no layers: use another one')
    return { layer: below, setup: { ...defaultSetup, envVars: image.envVars } }
  }
}

function checkLayerCount({ layers: { length } }: Image): void {
  if (length < maxLayers) return
  const limit = maxLayers - 1
  throw new BuildError(
    'base',
    `The image has ${length} layers, and the limit is ${limit}: build it with fewer layers`,
  )
}
