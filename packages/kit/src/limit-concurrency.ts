/** Runs at most `limit` tasks at a time. The others wait in order of arrival, and leave when their signal aborts. */
export function limitConcurrency(
  limit: number,
): <T>(task: () => Promise<T>, signal?: AbortSignal) => Promise<T> {
  const waiting: (() => void)[] = []
  let running = 0

  async function waitForTurn(signal: AbortSignal | undefined): Promise<void> {
    const turn = Promise.withResolvers<void>()
    const leave = () => {
      const index = waiting.indexOf(turn.resolve)
      if (index === -1) return // the turn has come: the task itself looks at the signal
      waiting.splice(index, 1)
      turn.reject(signal?.reason)
    }
    waiting.push(turn.resolve)
    signal?.addEventListener('abort', leave)
    try {
      await turn.promise
    } finally {
      signal?.removeEventListener('abort', leave)
    }
  }

  return async (task, signal) => {
    signal?.throwIfAborted()
    if (running >= limit) await waitForTurn(signal)
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
