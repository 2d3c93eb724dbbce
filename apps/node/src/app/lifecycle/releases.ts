import type { Release } from './pause.ts'

/**
 * Releases of paused sandboxes, which follow the answer to a pause: they end the processes, unmount, return the slot and
 * flush the disk. An operation that restores the sandbox in another cell waits for processes and mounts only. All others wait
 * for the whole release.
 */
export interface Releases {
  /** Begins a release, and waits until processes and mounts are gone. Reports its failure. */
  begin(sandboxId: string, release: () => Release): Promise<void>
  /** Waits for the release of a sandbox, if there is one. Never fails. */
  finished(sandboxId: string): Promise<void>
  /** Waits for all releases. */
  settle(): Promise<void>
}

export function createReleases(onError: (error: unknown) => void): Releases {
  const underway = new Map<string, Promise<void>>()
  return {
    async begin(sandboxId, release) {
      const { ended, finished } = release()
      const done = finished.catch(onError).finally(() => {
        if (underway.get(sandboxId) === done) underway.delete(sandboxId)
      })
      underway.set(sandboxId, done)
      await ended
    },
    finished: async (sandboxId) => underway.get(sandboxId),
    settle: async () => void (await Promise.all(underway.values())),
  }
}
