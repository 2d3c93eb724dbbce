/** Requests that work with files which may be evicted. */
export interface FileUses {
  /** Waits for an eviction of these files, and keeps the next ones from them until the result is disposed. */
  begin(key: string): Promise<Disposable>
  /** Whether a request works with the files, or began to within this time. */
  isUsed(key: string, withinMs: number): boolean
  /** Runs `evict` unless the files are in use. Uses that begin meanwhile wait for it. Returns undefined if they are in use. */
  evict<T>(key: string, evict: () => Promise<T>): Promise<T | undefined>
}

/** Beyond this number, the longest ago are forgotten. */
const mostRemembered = 10_000

export function createFileUses(nowMs: () => number): FileUses {
  const users = new Map<string, number>()
  const lastUsed = new Map<string, number>()
  const evictions = new Map<string, Promise<unknown>>()

  function leave(key: string): void {
    const left = (users.get(key) ?? 1) - 1
    if (left > 0) users.set(key, left)
    else users.delete(key)
    note(key)
  }

  function note(key: string): void {
    lastUsed.delete(key)
    lastUsed.set(key, nowMs())
    for (const oldest of lastUsed.keys()) {
      if (lastUsed.size <= mostRemembered) break
      lastUsed.delete(oldest)
    }
  }

  return {
    async begin(key) {
      for (let under = evictions.get(key); under; under = evictions.get(key)) await under
      users.set(key, (users.get(key) ?? 0) + 1)
      note(key)
      let isOver = false
      return {
        [Symbol.dispose]() {
          if (!isOver) leave(key)
          isOver = true
        },
      }
    },

    isUsed: (key, withinMs) =>
      users.has(key) || nowMs() - (lastUsed.get(key) ?? Number.NEGATIVE_INFINITY) < withinMs,

    async evict(key, evict) {
      if (users.has(key) || evictions.has(key)) return undefined
      const evicting = evict()
      // Waiting requests do not care how it ended: they look for the files themselves.
      const ended = Promise.allSettled([evicting])
      evictions.set(key, ended)
      try {
        return await evicting
      } finally {
        evictions.delete(key)
        lastUsed.delete(key)
      }
    },
  }
}
