import type { Snapshot, SnapshotStore } from '../domain/sandboxes/snapshot.ts'

export function memorySnapshots(): SnapshotStore {
  const all = new Map<string, Snapshot>()
  const place = (id: string) => ({ disk: `/snapshots/${id}/disk`, memoryDir: `/snapshots/${id}/m` })
  return {
    async add(snapshot, write) {
      await write(place(snapshot.snapshotId))
      all.set(snapshot.snapshotId, snapshot)
    },
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
