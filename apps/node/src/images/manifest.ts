import { createHash } from 'node:crypto'
import { arch } from 'node:process'
import { z } from 'zod'
import { BuildError } from '../domain/builds/build-error.ts'

/** Image manifest or index, as the registry returned it. */
export interface Manifest {
  readonly digest: string
  /** Digest for this machine's platform, when the image is an index of several platforms. */
  readonly ours: string | undefined
}

/**
 * Parses a manifest. Threats: a permitted registry could redirect the download to any other host with the `urls` of a
 * layer, so an image with `urls` is refused.
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
