import type { Interceptor } from '@connectrpc/connect'

/** Counts calls and tunnels under way, so that a part can finish them before it stops. */
export interface WorkCount {
  /** Counts a call until its answer. Streams, and calls that wait for an event, are not counted. */
  readonly count: Interceptor
  /** Counts something else. Returns a function that ends it. */
  begin(): () => void
  /** Resolves when nothing is under way, or after the limit. */
  ended(limitMs: number): Promise<void>
}

/** `waits`: methods that answer when something happens, which may be never. */
export function createWorkCount(waits: ReadonlySet<string> = new Set()): WorkCount {
  let underway = 0
  let onIdle: () => void = () => {}
  const begin = () => {
    underway += 1
    let hasEnded = false
    return () => {
      if (hasEnded) return
      hasEnded = true
      underway -= 1
      if (underway === 0) onIdle()
    }
  }
  return {
    begin,
    count: (next) => async (request) => {
      if (request.stream || waits.has(request.method.name)) return next(request)
      const end = begin()
      try {
        return await next(request)
      } finally {
        end()
      }
    },
    ended(limitMs) {
      if (underway === 0) return Promise.resolve()
      return new Promise((resolve) => {
        const timer = setTimeout(resolve, limitMs)
        onIdle = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    },
  }
}
