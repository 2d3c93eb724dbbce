import { createHash } from 'node:crypto'
import { arch } from 'node:process'
import { z } from 'zod'
import { BuildError } from '../domain/build.ts'

/** What a registry says an image is, as it said it. */
export interface Manifest {
  readonly digest: string
  /** Of images for several machines: the one for ours. */
  readonly ours: string | undefined
}

/**
 * Threats: a registry that may be asked can send us on to any other place by the addresses that it gives for a layer, so an
 * image with such is refused.
 */
export function readManifest(text: string): Manifest {
  const digest = `sha256:${createHash('sha256').update(text).digest('hex')}`
  const { data } = Stored.safeParse(parseJson(text))
  if (!data) throw new BuildError('base', 'The image is of a kind that is too old to be used')
  if ('manifests' in data) {
    const ours = data.manifests.find(
      ({ platform }) => platform?.os === 'linux' && platform.architecture === architecture,
    )
    if (ours) return { digest, ours: ours.digest }
    throw new BuildError('base', `The image is not made for linux/${architecture}`)
  }
  if ([data.config, ...data.layers].some(({ urls }) => (urls ?? []).length > 0)) {
    throw new BuildError('base', 'The image has layers that lie elsewhere, which are not fetched')
  }
  return { digest, ours: undefined }
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const architecture = arch === 'arm64' ? 'arm64' : 'amd64'

const Digest = z.string().regex(/^sha256:[0-9a-f]{64}$/)
const Blob = z.object({ digest: Digest, urls: z.array(z.string()).nullish() })
const Stored = z.union([
  z.object({
    manifests: z.array(
      z.object({
        digest: Digest,
        platform: z.object({ os: z.string(), architecture: z.string() }).nullish(),
      }),
    ),
  }),
  z.object({ config: Blob, layers: z.array(Blob) }),
])
