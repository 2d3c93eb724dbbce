/** Lets tasks that share a key run one after the other, in order of arrival; others do not wait for them. */
export interface Turns {
  take<T>(key: string, task: () => Promise<T>): Promise<T>
  /** Whether a task with this key runs or waits. */
  isTaken(key: string): boolean
  /** Until nothing that was asked for so far is under way. */
  settle(): Promise<void>
}

export function createTurns(): Turns {
  const last = new Map<string, Promise<unknown>>()
  return {
    take(key, task) {
      const done = (last.get(key) ?? Promise.resolve()).then(task)
      const quiet = done
        .catch(() => {})
        .finally(() => {
          if (last.get(key) === quiet) last.delete(key)
        })
      last.set(key, quiet)
      return done
    },

    isTaken: (key) => last.has(key),

    async settle() {
      await Promise.all(last.values())
    },
  }
}
