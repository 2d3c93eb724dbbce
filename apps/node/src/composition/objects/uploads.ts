import { join } from 'node:path'
import type { Logger } from '@atoll/kit/log'
import type { SandboxEvents } from '../../app/lifecycle/events.ts'
import type { Sandboxes } from '../../app/lifecycle/sandboxes.ts'
import { startPassLoop } from '../../app/objects/pass-loop.ts'
import type { PassLoop } from '../../app/objects/pass-loop.ts'
import { createUploadPasses } from '../../app/objects/upload-passes.ts'
import type { StoreTask, UploadPasses } from '../../app/objects/upload-passes.ts'
import { diskWriteLimitMs } from '../../domain/host/disks.ts'
import { cellDir, memoryDir } from '../../domain/host/installation.ts'
import { isSameContent, nameOfContent } from '../../domain/sandboxes/content-name.ts'
import { isEvicted } from '../../domain/sandboxes/sandbox.ts'
import type { PausedSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { Host } from '../host.ts'
import type { TemplateFiles } from '../template-files.ts'
import type { NodeObjects } from './open-objects.ts'

export interface UploadParts {
  readonly objects: NodeObjects
  readonly host: Host
  readonly files: TemplateFiles
  readonly sandboxes: Sandboxes
  readonly events: SandboxEvents
  readonly log: Logger
}

/** `nudge`: there may be something new to upload or to delete. */
export type Uploads = PassLoop

/**
 * Uploads what this node has and the object store does not, in a pass at a time. A pass looks at what is there, so a crash
 * forgets nothing, and what a pass could not do the next one tries again.
 */
export function startUploads(parts: UploadParts): Uploads {
  const closing = new AbortController()
  const loop = startPassLoop(openPasses(parts))
  const following = followPauses(parts.events.watch(closing.signal), loop.nudge)
  return {
    nudge: loop.nudge,
    async close() {
      closing.abort()
      await Promise.all([following, loop.close()])
    },
  }
}

async function followPauses(
  events: ReturnType<SandboxEvents['watch']>,
  nudge: () => void,
): Promise<void> {
  for await (const { kind } of events) if (kind === 'paused') nudge()
}

function openPasses(parts: UploadParts): UploadPasses {
  const { objects, log } = parts
  return createUploadPasses({
    chores: (signal) => [
      {
        name: 'unfinished uploads',
        run: () => objects.transfers.cleanUp(signal, objects.sandboxes.noteStored),
      },
      { name: 'marks', run: () => correctMarks(parts) },
      { name: 'deletions', run: () => objects.deletions.run(signal) },
    ],
    findUploads: (signal) => findUploads(parts, signal),
    isStoreWorking: objects.isWorking,
    nowMs: () => performance.now(),
    onError: (err, name) =>
      log.warn({ err, event: 'node.objects', name }, 'an upload failed; a later pass tries again'),
  })
}

async function findUploads(parts: UploadParts, signal: AbortSignal): Promise<StoreTask[]> {
  const { objects, host, files, sandboxes } = parts
  const { marks } = objects
  const paused = sandboxes
    .paused()
    .filter((one) => one.keptGeneration !== undefined && !objects.sandboxes.isDurable(one))
  const snapshots = (await host.snapshots.list()).filter(
    ({ snapshotId }) =>
      !host.snapshots.isTemporary(snapshotId) && !marks.has('snapshots', snapshotId),
  )
  const templates = files.templates
    .list()
    .filter(({ templateId }) => !marks.has('templates', templateId))
  const archives = await objects.archives.findWork()
  return [
    ...paused.map((record) => ({
      name: `sandboxes/${record.owner.sandboxId}/${nameOfContent(contentOf(record))}`,
      run: () => uploadSandbox(parts, record, signal),
    })),
    ...snapshots.map((snapshot) => ({
      name: `snapshots/${snapshot.snapshotId}`,
      run: () => objects.snapshots.upload(snapshot, signal),
    })),
    ...templates.map((template) => ({
      name: `templates/${template.templateId}`,
      run: () => objects.templates.upload(template, signal),
    })),
    ...archives.uploads.map((file) => ({
      name: `build-files/${file.ownerId}/${file.hash}`,
      run: () => objects.buildFiles.upload(file, signal),
    })),
    ...archives.uses.map((file) => ({
      name: `use of build-files/${file.ownerId}/${file.hash}`,
      run: () => objects.buildFiles.noteUse(file, signal),
    })),
  ]
}

function contentOf({ keptGeneration = 0, keptId }: PausedSandbox) {
  return { keptGeneration, keptId }
}

async function uploadSandbox(
  { objects, host, sandboxes }: UploadParts,
  paused: PausedSandbox,
  signal: AbortSignal,
): Promise<void> {
  const { sandboxId } = paused.owner
  const { installation } = host
  const isSame = (record: PausedSandbox) => isSameContent(record, paused)
  const isCurrent = () => {
    const found = sandboxes.get(sandboxId)
    return found !== undefined && !('slot' in found) && isSame(found)
  }
  const link = () =>
    sandboxes.whilePaused(sandboxId, async (record) => {
      if (!isSame(record)) return undefined
      const { cellId, disk, memory } = record
      return objects.links.link({
        disk: join(cellDir(installation, cellId), disk),
        memoryDir: memory === undefined ? undefined : memoryDir(installation, cellId),
      })
    })
  const writeDisk = async () => {
    const image = join(cellDir(installation, paused.cellId), paused.disk)
    await host.disks.awaitUnused(image, diskWriteLimitMs)
    if (isCurrent()) await host.disks.flush(image)
  }
  await objects.sandboxes.upload(paused, { writeDisk, link, isCurrent }, signal)
}

/**
 * Forgets notes about what this node does not have any more. Those of sandboxes are needed until their objects are deleted,
 * and those of evicted snapshots until they are deleted.
 */
async function correctMarks({ objects, host, files, sandboxes }: UploadParts): Promise<void> {
  const { marks } = objects
  for (const record of sandboxes.paused().filter(isEvicted)) {
    await objects.sandboxes.noteEvicted(record)
  }
  const snapshots = new Set((await host.snapshots.list()).map(({ snapshotId }) => snapshotId))
  const isEvictedSnapshot = (id: string) => marks.has('evicted-snapshots', id)
  await marks.removeWhere('snapshots', (id) => !snapshots.has(id) && !isEvictedSnapshot(id))
  const templates = new Set(files.templates.list().map(({ templateId }) => templateId))
  await marks.removeWhere('templates', (id) => !templates.has(id))
}
