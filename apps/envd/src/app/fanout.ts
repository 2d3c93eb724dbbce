/**
 * Delivers items from one producer to any number of subscribers without buffering: the producer waits until all
 * subscribers are done with an item. Closing a subscription releases the producer at once.
 */
export interface Fanout<T> {
  /** Delivers the item to all subscribers. Resolves when each of them has asked for the next. */
  publish(item: T): Promise<void>
  /** Delivers the last item without waiting. Later subscribers get nothing. */
  finish(item: T): void
  subscribe(): Subscription<T>
}

export interface Subscription<T> {
  /**
   * Returns the next item, 'idle' after `idleMs` without one, or undefined once closed. Invalidates the previous
   * item.
   */
  next(idleMs: number): Promise<T | 'idle' | undefined>
  close(): void
}

export function createFanout<T extends object>(): Fanout<T> {
  const subscribers = new Set<Queue<T>>()
  return {
    async publish(item) {
      const queues = [...subscribers]
      for (const queue of queues) queue.push(item)
      for (const queue of queues) await queue.done()
    },
    finish(item) {
      for (const queue of subscribers) queue.push(item)
      subscribers.clear()
    },
    subscribe() {
      const queue = createQueue<T>(() => subscribers.delete(queue))
      subscribers.add(queue)
      return queue
    },
  }
}

interface Queue<T> extends Subscription<T> {
  push(item: T): void
  /** Resolves when no pushed item is queued or in use. */
  done(): Promise<void>
}

function createQueue<T>(onClose: () => void): Queue<T> {
  const items: T[] = []
  let closed = false
  let arrived: PromiseWithResolvers<void> | undefined
  let done: PromiseWithResolvers<void> | undefined

  return {
    push(item) {
      items.push(item)
      arrived?.resolve()
    },
    async done() {
      if (closed || (items.length === 0 && arrived)) return
      done ??= Promise.withResolvers()
      await done.promise
    },
    async next(idleMs) {
      if (items.length === 0 && !closed) {
        releaseProducer()
        arrived = Promise.withResolvers()
        const timer = setTimeout(arrived.resolve, idleMs)
        await arrived.promise
        clearTimeout(timer)
        arrived = undefined
      }
      return closed ? undefined : (items.shift() ?? 'idle')
    },
    close() {
      closed = true
      items.length = 0
      onClose()
      arrived?.resolve()
      releaseProducer()
    },
  }

  function releaseProducer(): void {
    done?.resolve()
    done = undefined
  }
}
