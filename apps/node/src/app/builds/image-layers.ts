import { BuildError } from '../../domain/builds/build.ts'
import { imageKey } from '../../domain/builds/image.ts'
import type { ImageSource } from '../../domain/builds/image.ts'
import { defaultSetup } from '../../domain/sandboxes/setup.ts'
import type { Setup } from '../../domain/sandboxes/setup.ts'
import type { BuildPorts, BuildProgress } from './build-template.ts'

/** Imports the layers of an image. Pulls only when layers are missing. */
export type ImageLayers = (
  source: ImageWish,
  progress: BuildProgress,
) => Promise<{ readonly layer: string; readonly setup: Setup }>

interface ImageWish {
  readonly image: ImageSource
  readonly ownerId: string
  readonly mostLayers: number
}

export function createImageLayers({
  images,
  layers,
}: Pick<BuildPorts, 'images' | 'layers'>): ImageLayers {
  return async ({ image: source, ownerId, mostLayers }, { note, signal }) => {
    const image = await images.inspect(source, signal)
    if (image.layers.length >= mostLayers) {
      const count = `${image.layers.length} layers, and ${mostLayers - 1} are the most`
      throw new BuildError('base', `The image has ${count}: make one with fewer`)
    }
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
      await note('base', 'info', '[base] fetching the image')
      await using pulled = await images.pull(source, image, signal)
      for (const digest of missing) {
        signal.throwIfAborted()
        const key = imageKey(digest, { below, owner })
        below = await layers.add({ below, key }, (dir) => pulled.unpack(digest, dir))
      }
    } else {
      await note('base', 'info', '[base] the image is here already')
    }
    if (below === undefined) throw new BuildError('base', 'The image has no layers')
    return { layer: below, setup: { ...defaultSetup, envVars: image.envVars } }
  }
}
