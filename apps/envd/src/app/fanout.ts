/**
 * One producer, any number of subscribers, nothing lost and nothing kept: the producer waits until everybody is done with
 * what it gave them. Who closes its subscription is forgotten at once and holds nobody up.
 */
export interface Fanout<T> {
  /** Gives the item to everybody attached; resolves when all of them have asked for more. */
  publish(item: T): Promise<void>
  /** Gives the last item, and waits for nobody. Who subscribes later gets nothing. */
  finish(item: T): void
  subscribe(): Subscription<T>
}

export interface Subscription<T> {
  /** The next item, 'idle' after so much silence, undefined when the subscription is closed. Ends the use of the last. */
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
  /** Resolves when nothing that was pushed is in use or waits. */
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
