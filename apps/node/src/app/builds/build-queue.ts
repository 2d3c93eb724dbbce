/** Runs a limited number of builds at a time and shares the places among owners. */
export interface BuildQueue {
  /**
   * Runs the task when there is a place for it. Throws the reason of the signal if it aborts before that; afterwards the
   * task has to obey the signal itself.
   */
  run<T>(request: QueuedBuild, task: () => Promise<T>): Promise<T>
}

export interface QueuedBuild {
  readonly ownerId: string
  readonly signal: AbortSignal
  /** Called when the build has to wait, and whenever its position changes. The next build has position 1. */
  onWaiting(position: number): void
}

interface Waiting extends QueuedBuild {
  position: number
  start(): void
}

/**
 * An owner may use all `limit` places. Beyond them there is one more, for an owner without a running build: long builds
 * of one owner do not block all others.
 */
export function createBuildQueue(limit: number): BuildQueue {
  const running = new Map<string, number>()
  /** Sorted by arrival. */
  let waiting: Waiting[] = []

  function mayStart(ownerId: string): boolean {
    const total = [...running.values()].reduce((sum, count) => sum + count, 0)
    return total < limit || (total === limit && !running.has(ownerId))
  }

  /** The head of the queue has the fewest running builds: if it has to wait, so have all others. */
  function advance(): void {
    for (;;) {
      const [next] = inOrder(waiting, running)
      if (!next || !mayStart(next.ownerId)) break
      waiting = waiting.filter((build) => build !== next)
      add(running, next.ownerId, 1)
      next.start()
    }
    for (const [index, build] of inOrder(waiting, running).entries()) {
      if (build.position === index + 1) continue
      build.position = index + 1
      build.onWaiting(build.position)
    }
  }

  async function enter(request: QueuedBuild): Promise<void> {
    const { signal } = request
    signal.throwIfAborted()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const build: Waiting = { ...request, position: 0, start: resolve }
    const leave = () => {
      waiting = waiting.filter((other) => other !== build)
      advance()
      reject(signal.reason)
    }
    signal.addEventListener('abort', leave, { once: true })
    waiting.push(build)
    advance()
    try {
      await promise
    } finally {
      signal.removeEventListener('abort', leave)
    }
  }

  return {
    async run(request, task) {
      await enter(request)
      try {
        return await task()
      } finally {
        add(running, request.ownerId, -1)
        advance()
      }
    },
  }
}

/** Sorts builds by the order in which they get places: the owner with the fewest builds first, then by arrival. */
export function inOrder<T extends { readonly ownerId: string }>(
  arrived: readonly T[],
  running: ReadonlyMap<string, number>,
): T[] {
  const counts = new Map(running)
  const turns = arrived.map((build, arrival) => {
    const turn = counts.get(build.ownerId) ?? 0
    counts.set(build.ownerId, turn + 1)
    return { build, turn, arrival }
  })
  return turns
    .toSorted((a, b) => a.turn - b.turn || a.arrival - b.arrival)
    .map(({ build }) => build)
}

function add(counts: Map<string, number>, ownerId: string, change: number): void {
  const count = (counts.get(ownerId) ?? 0) + change
  if (count === 0) counts.delete(ownerId)
  else counts.set(ownerId, count)
}
