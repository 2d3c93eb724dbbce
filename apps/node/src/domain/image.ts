import { createHash } from 'node:crypto'
import { isDomainPattern, normalizeName } from '@atoll/kit/domain-name'
import { BuildError } from './build.ts'

/** An image in a registry, and who may have it. */
export interface ImageSource {
  readonly reference: string
  readonly username?: string | undefined
  /** Not to be logged, nor to be said to anybody but the registry. */
  readonly password?: string | undefined
}

/** What an image says of itself. */
export interface Image {
  /** What it is known by, whatever its name means later. */
  readonly digest: string
  /** Of what is unpacked of its layers, the lowest first. */
  readonly layers: readonly string[]
  readonly envVars: Readonly<Record<string, string>>
}

export interface Images {
  /** Whatever keeps it from being read is a `BuildError`. */
  inspect(source: ImageSource, signal: AbortSignal): Promise<Image>
  pull(source: ImageSource, image: Image, signal: AbortSignal): Promise<PulledImage>
}

export interface PulledImage extends AsyncDisposable {
  /** Into an empty folder. Gives what it takes on the disk. */
  unpack(layer: string, dir: string): Promise<number>
}

/** A registry that images may come from: its host, or `*.` and what is behind it. */
export interface Registry {
  readonly host: string
  readonly isPlain: boolean
}

/** `[http://]host[:port]`, comma separated. Undefined when one is none. */
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

/** The registry of an image, if images may come from there: whoever names one makes this machine talk to it. */
export function findRegistry(
  { reference }: ImageSource,
  allowed: readonly Registry[],
): Registry & { readonly name: string } {
  const [, path = ''] = /^([a-z0-9][a-z0-9._/:-]*)(@sha256:[0-9a-f]{64})?$/i.exec(reference) ?? []
  // Capitals are for tags alone: which registry a name with others means is not told the same everywhere.
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

/** The same for the same content over the same layers. Without an owner everybody may have it. */
export function imageKey(
  layer: string,
  { below, owner }: { readonly below: string | undefined; readonly owner: string | undefined },
): string {
  return createHash('sha256')
    .update(JSON.stringify(['image', layer, below ?? '', owner ?? '']))
    .digest('hex')
}

/** An image by what it is known by in place of its tag. */
export function byDigest({ reference }: ImageSource, digest: string): string {
  const [path = ''] = reference.split('@')
  return `${withoutTag(path)}@${digest}`
}

function withoutTag(path: string): string {
  return path.replace(/:[^/]*$/, '')
}

const longestReference = 512
