import type { Snapshot, SnapshotPlace, SnapshotStore } from '../domain/sandboxes/snapshot.ts'

export function memorySnapshots(): SnapshotStore {
  const all = new Map<string, Snapshot>()
  const temporary = new Set<string>()
  const place = (id: string) => ({ disk: `/snapshots/${id}/disk`, memoryDir: `/snapshots/${id}/m` })
  async function add(
    snapshot: Snapshot,
    write: (at: SnapshotPlace) => Promise<void>,
  ): Promise<void> {
    await write(place(snapshot.snapshotId))
    all.set(snapshot.snapshotId, snapshot)
  }
  return {
    add,
    addTemporary(snapshot, write) {
      temporary.add(snapshot.snapshotId)
      return add(snapshot, write)
    },
    isTemporary: (id) => temporary.has(id),
    find: async (id) => all.get(id),
    list: async () => [...all.values()],
    listQuarantined: async () => [],
    reseal: async () => ({ resealed: 0, unreadable: 0 }),
    place,
    sizeBytes: async () => 7,
    remove: async (id) => void all.delete(id),
    sweep: async () => {},
  }
}
