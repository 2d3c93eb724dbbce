import { rename } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Bundles } from '@atoll/objects/bundles'
import { readFacts } from '@atoll/objects/manifest'
import type { Manifest } from '@atoll/objects/manifest'
import { z } from 'zod'
import type { Snapshot, SnapshotPlace, SnapshotStore } from '../../domain/sandboxes/snapshot.ts'
import { StoredSnapshot } from '../snapshots.ts'
import type { LinkedFolders } from './linked-folders.ts'
import type { Marks } from './marks.ts'
import { Needs } from './needs.ts'
import type { NeedsStore } from './needs.ts'
import type { StoredNeeds } from './stored-layers.ts'
import { removeFolder } from './transfers.ts'
import type { Transfers } from './transfers.ts'

/** Snapshots in the object store. */
export interface ObjectSnapshots {
  upload(snapshot: Snapshot, signal: AbortSignal): Promise<void>
  /** Throws a fault when the store has no such snapshot, or this node cannot use it. */
  fetch(snapshotId: string): Promise<void>
  /**
   * Asks the store whether it has all that a fetch of this snapshot needs. If its manifest or a part is gone, this node
   * uploads the snapshot again.
   */
  isStored(snapshot: Snapshot, signal: AbortSignal): Promise<boolean>
  /**
   * Returns what a fetch of this snapshot needs besides its own bundle. Undefined: the store does not have the whole bundle.
   * Changes no mark: another node may have uploaded the snapshot.
   */
  findNeeds(snapshotId: string, signal: AbortSignal): Promise<StoredNeeds | undefined>
}

const Facts = z.object({ snapshot: StoredSnapshot, needs: Needs })

export function createObjectSnapshots(ports: {
  readonly transfers: Transfers
  readonly bundles: Pick<Bundles, 'findWhole'>
  readonly marks: Marks
  readonly needs: NeedsStore
  readonly links: LinkedFolders
  readonly snapshots: SnapshotStore
}): ObjectSnapshots {
  const { transfers, bundles, marks, snapshots } = ports
  return {
    async upload(snapshot, signal) {
      const { snapshotId } = snapshot
      const needs = await ports.needs.upload(snapshot, signal)
      const { disk, memoryDir } = snapshots.place(snapshotId)
      const source = { disk, memoryDir: snapshot.memory === undefined ? undefined : memoryDir }
      await using linked = await ports.links.link(source)
      if (!linked) return
      const outcome = await transfers.upload(
        {
          path: pathOf(snapshotId),
          facts: { snapshot, needs },
          folders: linked.folders,
          isWanted: async () => (await snapshots.find(snapshotId)) !== undefined,
        },
        signal,
      )
      if (outcome !== 'unwanted') await marks.add('snapshots', snapshotId)
    },

    async fetch(snapshotId) {
      if (await snapshots.find(snapshotId)) return
      const manifest = await transfers.find(pathOf(snapshotId))
      const { snapshot, needs } = readFacts(manifest, Facts)
      const envd = await ports.needs.fetch(snapshot, needs)
      await snapshots.add({ ...snapshot, snapshotId, envd }, (place) =>
        downloadTo(transfers, manifest, place),
      )
      await marks.add('snapshots', snapshotId)
      await marks.removeWhere('evicted-snapshots', (id) => id === snapshotId)
    },

    async isStored({ snapshotId, layer, memory }, signal) {
      const manifest = await bundles.findWhole(pathOf(snapshotId), signal)
      if (!manifest) {
        await marks.removeWhere('snapshots', (id) => id === snapshotId)
        return false
      }
      const { snapshot, needs } = readFacts(manifest, Facts)
      const isSame = snapshot.snapshotId === snapshotId && snapshot.layer === layer
      if (!isSame || !hasParts(manifest, memory)) return false
      return ports.needs.areStored(layer, needs, signal)
    },

    findNeeds: (snapshotId, signal) => findNeeds(bundles, snapshotId, signal),
  }
}

async function findNeeds(
  bundles: Pick<Bundles, 'findWhole'>,
  snapshotId: string,
  signal: AbortSignal,
): Promise<StoredNeeds | undefined> {
  const manifest = await bundles.findWhole(pathOf(snapshotId), signal)
  if (!manifest) return undefined
  const { snapshot, needs } = readFacts(manifest, Facts)
  const isOwn = snapshot.snapshotId === snapshotId
  if (!isOwn || !hasParts(manifest, snapshot.memory)) return undefined
  return { layer: snapshot.layer, envd: needs.envd }
}

/** Whether a bundle has a disk, and the memory if there is any. */
export function hasParts({ parts }: Pick<Manifest, 'parts'>, memory: string | undefined): boolean {
  const names = new Set(parts.map(({ name }) => name))
  return names.has('disk') && (memory === undefined || names.has('memory'))
}

/** Fills the place of a snapshot or of a paused sandbox. */
export async function downloadTo(
  transfers: Transfers,
  manifest: Awaited<ReturnType<Transfers['find']>>,
  { disk, memoryDir }: SnapshotPlace,
): Promise<void> {
  const work = join(dirname(disk), 'fetched-disk')
  await transfers.download(manifest, 'disk', work)
  await rename(join(work, 'disk.img'), disk)
  await removeFolder(work)
  const hasMemory = manifest.parts.some(({ name }) => name === 'memory')
  if (hasMemory) await transfers.download(manifest, 'memory', memoryDir)
}

function pathOf(snapshotId: string): string {
  return `snapshots/${snapshotId}`
}
