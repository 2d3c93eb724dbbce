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

/**
 * Newest formats that this release reads: of the manifest, and of the facts in it. This release writes them too. A release that
 * changes a format so that older releases would misread it raises the number. Absent: the first format.
 */
const newestFormat = 1
const newestFactsFormat = 1

const Formats = z.object({
  format: z.int().min(1).default(1),
  factsFormat: z.int().min(1).default(1),
})

const Stored = z.object({
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
  const formats = { format: newestFormat, factsFormat: newestFactsFormat }
  const text = JSON.stringify({ ...formats, ...manifest })
  return Buffer.from(sealing.seal(text, identityOf(manifest.path)))
}

/** Throws a fault when the key is missing, or the manifest is damaged, newer, or belongs to another bundle. */
export function openManifest(sealed: Buffer, path: string, keys: ObjectKeys): Manifest {
  const text = keys.open(sealed.toString('utf8'), identityOf(path))
  const body = parseJson(text)
  const formats = Formats.safeParse(body)
  if (!formats.success) throw damagedObject()
  const { format, factsFormat } = formats.data
  if (format > newestFormat || factsFormat > newestFactsFormat) throw newerObject(path)
  const parsed = Stored.safeParse(body)
  if (!parsed.success) throw damagedObject()
  const manifest = parsed.data
  const isOwn = ({ key }: Part) => key.startsWith(`${path}/`)
  if (manifest.path !== path || !manifest.parts.every(isOwn)) throw damagedObject()
  return manifest
}

/** Returns the facts of a bundle. Throws a fault when they are not of this kind. */
export function readFacts<T>({ facts }: Pick<Manifest, 'facts'>, schema: z.ZodType<T>): T {
  const parsed = schema.safeParse(facts)
  if (parsed.success) return parsed.data
  throw damagedObject()
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw damagedObject()
  }
}

function identityOf(path: string): string {
  return `object:${path}`
}

export function newerObject(path: string): Fault {
  return new Fault(
    'unavailable',
    'object_unreadable',
    `The objects of ${path} were written by a newer release: upgrade this node`,
  )
}
