import type { ObjectStore } from './object-store.ts'

/**
 * Returns whether the store takes a small object at this moment: if so, a failed upload was no outage. `name` is
 * unique for each node, so that what a crash leaves is removed by the next probe.
 */
export async function acceptsObjects(
  store: Pick<ObjectStore, 'create' | 'delete'>,
  name: string,
  signal?: AbortSignal,
): Promise<boolean> {
  const key = `probes/${name}`
  try {
    await store.delete([key], signal)
    await store.create(key, Buffer.from(name), signal)
    await store.delete([key], signal)
    return true
  } catch {
    return false
  }
}
