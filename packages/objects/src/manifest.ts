import type { KeyRing } from '@atoll/kit/encryption/key-ring'
import { Fault } from '@atoll/kit/fault'
import { z } from 'zod'
import { damagedObject } from './frames.ts'

/** Describes a bundle: what it is, and the objects with its content. Stored encrypted, since it holds their keys. */
export interface Manifest {
  /** Path of the bundle, such as `snapshots/abc`. */
  readonly path: string
  /** Upload that wrote the parts. */
  readonly attempt: string
  /** Facts for the reader. Each kind of bundle has its own schema. */
  readonly facts: unknown
  readonly parts: readonly Part[]
}

export interface Part {
  readonly name: string
  /** Key of the object. */
  readonly key: string
  /** Size and SHA-256 of the object, as stored. */
  readonly sizeBytes: number
  readonly sha256: string
  /** Key of the content, in hexadecimal. Used for this object only. */
  readonly secret: string
  /** Space that the content takes on a disk. */
  readonly unpackedBytes: number
}

const Stored = z.object({
  format: z.literal(1),
  path: z.string(),
  attempt: z.string(),
  facts: z.unknown(),
  parts: z.array(
    z.object({
      name: z.string(),
      key: z.string(),
      sizeBytes: z.int().nonnegative(),
      sha256: z.string().regex(/^[0-9a-f]{64}$/),
      secret: z.string().regex(/^[0-9a-f]{64}$/),
      unpackedBytes: z.int().nonnegative(),
    }),
  ),
})

export const maxManifestBytes = 4 * 1024 * 1024

export type ObjectKeys = Pick<KeyRing, 'open' | 'beginWrite'>

export function manifestKey(path: string): string {
  return `${path}/manifest`
}

export function sealManifest(manifest: Manifest, keys: ObjectKeys): Buffer {
  using sealing = keys.beginWrite()
  const text = JSON.stringify({ format: 1, ...manifest })
  return Buffer.from(sealing.seal(text, identityOf(manifest.path)))
}

/** Throws a fault when the key is missing, or the manifest is damaged, newer, or belongs to another bundle. */
export function openManifest(body: Buffer, path: string, keys: ObjectKeys): Manifest {
  const text = keys.open(body.toString('utf8'), identityOf(path))
  const parsed = Stored.safeParse(JSON.parse(text))
  if (!parsed.success) throw newerManifest(path)
  const { format: _format, ...manifest } = parsed.data
  const isOwn = ({ key }: Part) => key.startsWith(`${path}/`)
  if (manifest.path !== path || !manifest.parts.every(isOwn)) throw damagedObject()
  return manifest
}

function identityOf(path: string): string {
  return `object:${path}`
}

function newerManifest(path: string): Fault {
  return new Fault(
    'unavailable',
    'object_unreadable',
    `The objects of ${path} were written by a newer release: upgrade this node`,
  )
}
