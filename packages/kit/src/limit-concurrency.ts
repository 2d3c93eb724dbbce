/** Runs at most `limit` tasks at a time. The others wait in order of arrival. */
export function limitConcurrency(limit: number): <T>(task: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = []
  let running = 0
  return async (task) => {
    if (running >= limit) await new Promise<void>((resolve) => waiting.push(resolve))
    else running += 1
    try {
      return await task()
    } finally {
      // Hands the slot directly to the next task, so that no newcomer gets in between.
      const next = waiting.shift()
      if (next) next()
      else running -= 1
    }
  }
}
