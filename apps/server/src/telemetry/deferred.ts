/** Work that is counted later, so that requests do not wait for the library of metrics. */
export interface Deferred {
  add(work: () => void): void
  /** Does all work that was added. */
  flush(): void
}

/** Bounds the memory, and the time of one flush to about a millisecond. */
const maxWaiting = 256

export function createDeferred(): Deferred {
  let waiting: (() => void)[] = []
  const flush = () => {
    const due = waiting
    waiting = []
    for (const work of due) work()
  }
  return {
    add(work) {
      waiting.push(work)
      if (waiting.length === maxWaiting) setImmediate(flush)
    },
    flush,
  }
}
