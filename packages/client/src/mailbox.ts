/** Items on their way from where they happen to whoever asks for them one by one. */
export interface Mailbox<T extends object> {
  put(item: T): void
  /** No more will come. Told when all items were taken; a failure once, as generators do. The first end counts. */
  end(failure?: Error): void
  /** Forgets the items that nobody took. */
  clear(): void
  next(): Promise<IteratorResult<T, undefined>>
  /** Whether somebody waits for the next item, and so is done with all before it. */
  isAwaited(): boolean
}

/** `onAsked` is called whenever somebody begins to wait for an item. */
export function createMailbox<T extends object>(onAsked: () => void): Mailbox<T> {
  const items: T[] = []
  const readers: PromiseWithResolvers<IteratorResult<T, undefined>>[] = []
  let taken = 0
  let isOver = false
  let failure: Error | undefined
  return {
    put(item) {
      const reader = readers.shift()
      if (reader) reader.resolve({ done: false, value: item })
      else items.push(item)
    },
    end(thrown) {
      if (isOver) return
      isOver = true
      failure = thrown
      for (const reader of readers.splice(0)) reader.resolve(tellEnd())
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
      if (isOver) return tellEnd()
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

  function tellEnd(): Promise<IteratorResult<T, undefined>> {
    const thrown = failure
    failure = undefined
    return thrown ? Promise.reject(thrown) : Promise.resolve({ done: true, value: undefined })
  }
}
