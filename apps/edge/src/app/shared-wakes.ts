import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import { envdPort } from '../domain/internal-path.ts'
import type { Wake, WakeRequest, WakeResult } from '../domain/wake.ts'

/** Requests to the same sandbox with the same tokens share one wake. Requests to envd's port do not share with others. */
export interface SharedWakes {
  /** Rejects when `signal` aborts. The wake is cancelled when its last caller has gone. */
  wake(request: WakeRequest, signal: AbortSignal): Promise<WakeResult>
}

interface Attempt {
  readonly result: Promise<WakeResult>
  readonly giveUp: () => void
  waiting: number
}

export function createSharedWakes(wake: Wake, log: Logger): SharedWakes {
  const pending = new Map<string, Attempt>()

  function begin(key: string, request: WakeRequest): Attempt {
    const stop = new AbortController()
    const forget = () => {
      if (pending.get(key) === attempt) pending.delete(key)
    }
    const result = wake(request, stop.signal)
      .catch((error: unknown): WakeResult => {
        if (!stop.signal.aborted) log.error({ err: error, event: 'edge.wake' }, 'wake failed')
        const isOut = error instanceof Fault && error.kind === 'unavailable'
        return { kind: isOut ? 'unavailable' : 'not_found' }
      })
      .finally(forget)
    const giveUp = () => {
      forget()
      stop.abort()
    }
    const attempt: Attempt = { result, giveUp, waiting: 0 }
    pending.set(key, attempt)
    return attempt
  }

  return {
    async wake(request, signal) {
      signal.throwIfAborted()
      const { sandboxId, port, accessToken, trafficToken } = request
      const key = JSON.stringify([sandboxId, port === envdPort, accessToken, trafficToken])
      const attempt = pending.get(key) ?? begin(key, request)
      attempt.waiting += 1
      try {
        return await abortable(attempt.result, signal)
      } finally {
        attempt.waiting -= 1
        if (attempt.waiting === 0) attempt.giveUp()
      }
    },
  }
}

function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(new Error('wake cancelled', { cause: signal.reason }))
    signal.addEventListener('abort', abort, { once: true })
    work.finally(() => signal.removeEventListener('abort', abort)).then(resolve, reject)
  })
}
