import { mkdir, rm } from 'node:fs/promises'
import type { Snapshot, SnapshotPlace, SnapshotStore } from '../domain/sandboxes/snapshot.ts'

/** A store whose snapshots outlive this process. */
export type DurableSnapshots = Omit<SnapshotStore, 'addTemporary' | 'isTemporary'>

/**
 * Adds snapshots that are removed as soon as sandboxes were created from them. Only this process knows their records.
 * Their folders have names of unfinished snapshots, so the next start removes them.
 */
export function withTemporarySnapshots(
  durable: DurableSnapshots,
  folders: {
    /** Returns a new path that a sweep removes. */
    create(): string
    place(folder: string): SnapshotPlace
    sizeBytes(place: SnapshotPlace): Promise<number>
  },
): SnapshotStore {
  const temporary = new Map<string, { readonly snapshot: Snapshot; readonly folder: string }>()
  const placeOf = (snapshotId: string) => {
    const found = temporary.get(snapshotId)
    return found && folders.place(found.folder)
  }
  return {
    ...durable,

    async addTemporary(snapshot, write) {
      const folder = folders.create()
      await mkdir(folder, { recursive: true, mode: 0o700 })
      try {
        await write(folders.place(folder))
      } catch (error) {
        await rm(folder, { recursive: true, force: true })
        throw error
      }
      temporary.set(snapshot.snapshotId, { snapshot, folder })
    },

    isTemporary: (snapshotId) => temporary.has(snapshotId),

    find: async (snapshotId) =>
      temporary.get(snapshotId)?.snapshot ?? (await durable.find(snapshotId)),

    list: async () => [
      ...[...temporary.values()].map(({ snapshot }) => snapshot),
      ...(await durable.list()),
    ],

    place: (snapshotId) => placeOf(snapshotId) ?? durable.place(snapshotId),

    async sizeBytes(snapshotId) {
      const place = placeOf(snapshotId)
      return place ? folders.sizeBytes(place) : durable.sizeBytes(snapshotId)
    },

    async remove(snapshotId) {
      const folder = temporary.get(snapshotId)?.folder
      if (folder === undefined) return durable.remove(snapshotId)
      await rm(folder, { recursive: true, force: true })
      temporary.delete(snapshotId)
    },
  }
}
