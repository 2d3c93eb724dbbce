/**
 * Captures a data directory for a backup, in seconds and without copying large files: links to the files of paused
 * sandboxes and snapshots, a copy of the store, copies of small files.
 */
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { endMissingSandboxes } from '@atoll/api'
import { Fault } from '@atoll/kit/fault'
import { randomLabel } from '@atoll/kit/id'
import type { Capture } from '@atoll/node/capture'
import { z } from 'zod'
import { copySettings, findSettings } from './settings-files.ts'
import { captureFolder } from './work-folders.ts'

/** Result of a capture: folders to copy, valid until the capture is disposed. */
export const Captured = z.object({
  store: z.enum(['sqlite', 'postgres']),
  sandboxes: z.int(),
  snapshots: z.int(),
  templates: z.int(),
  memoryReleases: z.array(z.string()),
  /** `path`: below the backup. `from`: absolute. */
  folders: z.array(z.object({ path: z.string(), from: z.string() })),
  unknown: z.array(z.object({ name: z.string(), isCopied: z.boolean() })),
  /** Paths that are left out: their record cannot be read, or they are missing. */
  damaged: z.array(z.string()),
})

export type Captured = z.infer<typeof Captured>

export interface CaptureParts {
  readonly dataDir: string
  openCapture(into: string): Promise<Capture & Disposable>
  /** Writes a copy of the store to a new file. Absent for PostgreSQL. */
  copyStore?: ((path: string) => Promise<void>) | undefined
}

const maxAttempts = 5

export async function captureInstallation(
  parts: CaptureParts,
): Promise<{ readonly captured: Captured } & AsyncDisposable> {
  const folder = captureFolder(parts.dataDir)
  for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
    await using opened = new AsyncDisposableStack()
    const staging = join(folder, randomLabel(8))
    opened.defer(() => rm(staging, { recursive: true, force: true }))
    await mkdir(staging, { recursive: true, mode: 0o700 })
    const before = await findSettings(parts.dataDir)
    const node = opened.use(await parts.openCapture(staging))
    const captured = await captureOnce(parts, { staging, node })
    const after = await findSettings(parts.dataDir)
    // Keys that changed meanwhile may not fit what they encrypt.
    if (before.fingerprint !== after.fingerprint) continue
    await copySettings(parts.dataDir, after, join(staging, 'settings'))
    const owned = opened.move()
    return {
      captured: { ...captured, unknown: [...after.unknown] },
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    }
  }
  throw new Fault(
    'conflict',
    'backup_unstable',
    `Certificates or keys in ${parts.dataDir} changed during each of ${maxAttempts} attempts. Try again`,
  )
}

async function captureOnce(
  { copyStore }: CaptureParts,
  { staging, node }: { readonly staging: string; readonly node: Capture },
): Promise<Omit<Captured, 'unknown'>> {
  const storeFile = join(staging, 'store', 'atoll.db')
  await node.collect()
  // The store comes second: what it says to be there has its files already, or gets them below.
  if (copyStore) {
    await mkdir(join(staging, 'store'), { mode: 0o700 })
    await copyStore(storeFile)
  }
  await node.collect()
  const { sandboxIds, folders, ...found } = await node.finish()
  if (copyStore) {
    endMissingSandboxes(storeFile, new Set(sandboxIds), { now: new Date(), reason: notCaptured })
  }
  const ownFolders = ['settings', ...(copyStore ? ['store'] : [])]
  return {
    store: copyStore ? 'sqlite' : 'postgres',
    sandboxes: sandboxIds.length,
    snapshots: found.snapshots,
    templates: found.templates,
    memoryReleases: [...found.memoryReleases],
    folders: [...ownFolders.map((path) => ({ path, from: join(staging, path) })), ...folders],
    damaged: [...found.damaged],
  }
}

/** Shown to users after "Sandbox … was not found: it". */
const notCaptured =
  'was running when the backup was taken that Atoll was restored from; a backup has only paused sandboxes and snapshots'
