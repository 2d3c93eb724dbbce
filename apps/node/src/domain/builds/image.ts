import { createHash } from 'node:crypto'
import { isDomainPattern, normalizeName } from '@atoll/kit/domain-name'
import { BuildError } from './build-error.ts'

/** An image in a registry, with optional credentials. */
export interface ImageSource {
  readonly reference: string
  readonly username?: string | undefined
  /** Secret: never logged, and sent only to the registry. */
  readonly password?: string | undefined
}

export interface Image {
  /** Content digest. Unlike a tag, it always names the same image. */
  readonly digest: string
  /** Digests of the unpacked layers, lowest first. */
  readonly layers: readonly string[]
  readonly envVars: Readonly<Record<string, string>>
}

export interface Images {
  /** Throws a `BuildError` when the image cannot be read. */
  inspect(source: ImageSource, signal: AbortSignal): Promise<Image>
  pull(source: ImageSource, image: Image, signal: AbortSignal): Promise<PulledImage>
}

export interface PulledImage extends AsyncDisposable {
  /** Unpacks a layer into an empty folder. Returns the bytes it takes on disk. */
  unpack(layer: string, dir: string): Promise<number>
}

/** An allowed registry: a host, or `*.` and a domain. */
export interface Registry {
  readonly host: string
  readonly isPlain: boolean
}

/** Parses a comma-separated list of `[http://]host[:port]`. Returns undefined when an entry is malformed. */
export function parseRegistries(text: string): Registry[] | undefined {
  const parsed = text.split(',').map((entry) => {
    const [, scheme, host = '', port = ''] =
      /^(http:\/\/)?([^/:]+)(:\d{1,5})?$/.exec(entry.trim()) ?? []
    const isHost = isDomainPattern(host) || /^[\d.]+$/.test(host) || host === 'localhost'
    return isHost
      ? { host: `${normalizeName(host)}${port}`, isPlain: scheme !== undefined }
      : undefined
  })
  return parsed.every((one) => one !== undefined) ? parsed : undefined
}

/**
 * Returns the registry of an image. Throws a `BuildError` when the registry is not allowed: a build makes this machine
 * connect to it.
 */
export function findRegistry(
  { reference }: ImageSource,
  allowed: readonly Registry[],
): Registry & { readonly name: string } {
  const [, path = ''] = /^([a-z0-9][a-z0-9._/:-]*)(@sha256:[0-9a-f]{64})?$/i.exec(reference) ?? []
  // Only tags may have capitals: tools disagree on which registry a name with capitals means.
  const isPlain = path !== '' && !/[A-Z]/.test(withoutTag(path))
  if (reference.length > longestReference || !isPlain) {
    throw new BuildError('base', 'The image is malformed: write one such as python:3.12')
  }
  const [first = '', ...rest] = reference.split('/')
  const isNamed = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost')
  const name = isNamed ? first : 'docker.io'
  const found = allowed.find(({ host }) =>
    host.startsWith('*.') ? name.endsWith(host.slice(1)) : name === host,
  )
  if (found) return { ...found, name }
  throw new BuildError(
    'base',
    `Images of ${name} may not be used here: the operator adds registries by ATOLL_REGISTRIES`,
  )
}

/** Returns the cache key of an image layer over the layers below. Layers without an owner are shared by all owners. */
export function imageKey(
  layer: string,
  { below, owner }: { readonly below: string | undefined; readonly owner: string | undefined },
): string {
  return createHash('sha256')
    .update(JSON.stringify(['image', layer, below ?? '', owner ?? '']))
    .digest('hex')
}

/** Returns the image reference with the digest in place of the tag. */
export function byDigest({ reference }: ImageSource, digest: string): string {
  const [path = ''] = reference.split('@')
  return `${withoutTag(path)}@${digest}`
}

function withoutTag(path: string): string {
  return path.replace(/:[^/]*$/, '')
}

const longestReference = 512
