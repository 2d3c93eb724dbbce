/** Runs tasks with the same key one after another, in order of arrival. Tasks with other keys do not wait. */
export interface KeyedQueue {
  run<T>(key: string, task: () => Promise<T>): Promise<T>
  /** Whether a task with this key runs or waits. */
  isBusy(key: string): boolean
  /** Waits for all tasks queued so far. */
  settle(): Promise<void>
}

export function createKeyedQueue(): KeyedQueue {
  const last = new Map<string, Promise<unknown>>()
  return {
    run(key, task) {
      const done = (last.get(key) ?? Promise.resolve()).then(task)
      const quiet = done
        .catch(() => {})
        .finally(() => {
          if (last.get(key) === quiet) last.delete(key)
        })
      last.set(key, quiet)
      return done
    },

    isBusy: (key) => last.has(key),

    async settle() {
      await Promise.all(last.values())
    },
  }
}
