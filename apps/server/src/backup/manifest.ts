/**
 * Manifest of a backup: names every archive with its checksum. It is written last, so a folder without one is not a
 * backup.
 */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import { z } from 'zod'

export const manifestName = 'manifest.json'

/** Raised when an older release could not restore the result. */
const format = 1

/** Folder of the data directory, or the directory itself. */
const archivePath =
  /^(settings|store|(cells|snapshots|steps|layers|envd)\/[A-Za-z0-9][A-Za-z0-9._-]*)$/

const Archive = z.object({
  /** Path of the archive without its ending, and of the folder that it becomes. */
  path: z.string().regex(archivePath),
  bytes: z.int().nonnegative(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
})

const Manifest = z.object({
  createdAt: z.iso.datetime(),
  /** Release of Atoll that wrote the backup. */
  release: z.string(),
  architecture: z.string(),
  /** `postgres`: the database is not in the backup. */
  store: z.enum(['sqlite', 'postgres']),
  sandboxes: z.int(),
  snapshots: z.int(),
  templates: z.int(),
  /** Releases of runsc that wrote the memory in the backup. */
  memoryReleases: z.array(z.string()),
  archives: z.array(Archive),
})

export type Archive = z.infer<typeof Archive>
export type Manifest = z.infer<typeof Manifest>

export function encodeManifest(manifest: Manifest): string {
  const content = JSON.stringify(manifest)
  const checksum = sha256(content)
  return `${JSON.stringify({ format, checksum, manifest }, undefined, 2)}\n`
}

const Envelope = z.object({
  format: z.int(),
  checksum: z.string().optional(),
  manifest: z.unknown(),
})

export function decodeManifest(text: string, source: string): Manifest {
  const envelope = Envelope.safeParse(parseJson(text)).data
  if (!envelope) throw damaged(source, `its ${manifestName} is not valid`)
  if (envelope.format > format) {
    throw new Fault(
      'conflict',
      'backup_newer',
      `${source} has backup format ${envelope.format}, and this release of Atoll reads up to ${format}. Restore it with the release that wrote it, or a newer one`,
    )
  }
  if (sha256(JSON.stringify(envelope.manifest)) !== envelope.checksum) {
    throw damaged(source, `the checksum of its ${manifestName} is wrong`)
  }
  const manifest = Manifest.safeParse(envelope.manifest).data
  if (!manifest) throw damaged(source, `its ${manifestName} is not valid`)
  return manifest
}

export async function readManifest(source: string): Promise<Manifest> {
  const text = await readFile(join(source, manifestName), 'utf8').catch((cause: unknown) => {
    throw new Fault(
      'not_found',
      'no_backup',
      `${source} is not a backup: it has no readable ${manifestName}. A backup that was interrupted has none`,
      { cause },
    )
  })
  return decodeManifest(text, source)
}

export function damaged(source: string, detail: string): Fault {
  return new Fault(
    'conflict',
    'backup_damaged',
    `The backup ${source} is damaged: ${detail}. Nothing was restored. Use another backup`,
  )
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
