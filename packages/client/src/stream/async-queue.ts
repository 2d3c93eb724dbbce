/** Queue between an event producer and an async iterator. */
export interface AsyncQueue<T extends object> {
  put(item: T): void
  /**
   * Ends the queue. Readers first get the remaining items, then the failure once, then the end. Later calls are
   * ignored.
   */
  end(failure?: Error): void
  /** Drops all unread items. */
  clear(): void
  next(): Promise<IteratorResult<T, undefined>>
  /** Whether a reader waits for the next item, and so no longer needs the earlier ones. */
  isAwaited(): boolean
}

/** `onAsked` is called whenever a reader starts to wait. */
export function createAsyncQueue<T extends object>(onAsked: () => void): AsyncQueue<T> {
  const items: T[] = []
  const readers: PromiseWithResolvers<IteratorResult<T, undefined>>[] = []
  let taken = 0
  let isDone = false
  let failure: Error | undefined
  return {
    put(item) {
      const reader = readers.shift()
      if (reader) reader.resolve({ done: false, value: item })
      else items.push(item)
    },
    end(thrown) {
      if (isDone) return
      isDone = true
      failure = thrown
      for (const reader of readers.splice(0)) reader.resolve(settleEnd())
    },
    clear,
    isAwaited: () => readers.length > 0,
    next() {
      const item = items[taken]
      if (item) {
        taken += 1
        if (taken === items.length) clear()
        return Promise.resolve({ done: false, value: item })
      }
      if (isDone) return settleEnd()
      const reader = Promise.withResolvers<IteratorResult<T, undefined>>()
      readers.push(reader)
      onAsked()
      return reader.promise
    },
  }

  function clear(): void {
    items.length = 0
    taken = 0
  }

  function settleEnd(): Promise<IteratorResult<T, undefined>> {
    const thrown = failure
    failure = undefined
    return thrown ? Promise.reject(thrown) : Promise.resolve({ done: true, value: undefined })
  }
}
