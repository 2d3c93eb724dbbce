/** What is put in comes out in order, to one reader, until the end. */
export interface Queue<T> {
  /** Returns once there is room for the next. */
  put(item: T): Promise<void>
  end(): void
  read(): AsyncIterable<T>
}

const mostWaiting = 256

export function createQueue<T>(): Queue<T> {
  let items: T[] = []
  let hasEnded = false
  let wake = () => {}
  let room = Promise.withResolvers<void>()
  return {
    async put(item) {
      items.push(item)
      wake()
      if (items.length >= mostWaiting) await room.promise
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
        // Nobody reads any more, so nobody need wait.
        room.resolve()
      }
    },
  }
}
