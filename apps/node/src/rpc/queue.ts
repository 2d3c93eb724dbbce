/** Bounded first-in, first-out queue for one reader. */
export interface Queue<T> {
  /** Resolves once there is room for the next item. */
  put(item: T): Promise<void>
  end(): void
  read(): AsyncIterable<T>
}

const maxWaiting = 256

export function createQueue<T>(): Queue<T> {
  let items: T[] = []
  let hasEnded = false
  let wake = () => {}
  let room = Promise.withResolvers<void>()
  return {
    async put(item) {
      items.push(item)
      wake()
      if (items.length >= maxWaiting) await room.promise
    },
    end() {
      hasEnded = true
      wake()
    },
    async *read() {
      try {
        for (;;) {
          const batch = items
          items = []
          yield* batch
          room.resolve()
          room = Promise.withResolvers()
          if (items.length > 0) continue
          if (hasEnded) return
          await new Promise<void>((resolve) => (wake = resolve))
        }
      } finally {
        // Release waiting writers: the reader is gone.
        room.resolve()
      }
    },
  }
}
