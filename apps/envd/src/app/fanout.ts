/**
 * One producer, any number of subscribers, nothing lost: every subscriber has a bounded queue, and the producer waits
 * while any of them is full. Who closes its subscription is forgotten at once and holds nobody up.
 */
export interface Fanout<T> {
  /** Gives the items to everybody attached; resolves when all of them have room for more. */
  publish(...items: readonly T[]): Promise<void>
  /** Gives the last item, past every limit. Who subscribes later gets nothing. */
  finish(item: T): void
  subscribe(): Subscription<T>
}

export interface Subscription<T> {
  /** The next item, 'idle' after so much silence, undefined when the subscription is closed. */
  next(idleMs: number): Promise<Taken<T> | 'idle' | undefined>
  close(): void
}

export interface Taken<T> {
  readonly item: T
  /** Whether another one waits already. */
  readonly more: boolean
}

export function createFanout<T>(queueLimit: number): Fanout<T> {
  const attached = new Set<Queue<T>>()
  return {
    async publish(...items) {
      for (const queue of attached) for (const item of items) queue.push(item)
      for (const queue of attached) await queue.room()
    },
    finish(item) {
      for (const queue of attached) queue.push(item)
      attached.clear()
    },
    subscribe() {
      const queue = createQueue<T>(queueLimit, () => attached.delete(queue))
      attached.add(queue)
      return queue
    },
  }
}

interface Queue<T> extends Subscription<T> {
  push(item: T): void
  room(): Promise<void>
}

function createQueue<T>(limit: number, onClose: () => void): Queue<T> {
  const items: T[] = []
  let closed = false
  let arrived: PromiseWithResolvers<void> | undefined
  let drained: PromiseWithResolvers<void> | undefined

  return {
    push(item) {
      items.push(item)
      arrived?.resolve()
    },
    async room() {
      if (closed || items.length < limit) return
      drained ??= Promise.withResolvers()
      await drained.promise
    },
    async next(idleMs) {
      if (items.length === 0 && !closed) {
        arrived = Promise.withResolvers()
        const timer = setTimeout(arrived.resolve, idleMs)
        await arrived.promise
        clearTimeout(timer)
        arrived = undefined
      }
      if (closed) return undefined
      const item = items.shift()
      if (item === undefined) return 'idle'
      if (items.length < limit) letOn()
      return { item, more: items.length > 0 }
    },
    close() {
      closed = true
      items.length = 0
      onClose()
      arrived?.resolve()
      letOn()
    },
  }

  function letOn(): void {
    drained?.resolve()
    drained = undefined
  }
}
