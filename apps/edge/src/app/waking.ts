import type { Logger } from '@atoll/kit/log'
import { envdPort } from '../domain/internal-path.ts'
import type { Wake, WakeRequest, WakeResult } from '../domain/wake.ts'

/** Callers of one sandbox that come with the same tokens wait for one wake together; envd's port asks for others. */
export interface Waking {
  /** Rejects when `signal` aborts; the wake itself is given up when nobody waits for it any more. */
  wake(request: WakeRequest, signal: AbortSignal): Promise<WakeResult>
}

interface Attempt {
  readonly result: Promise<WakeResult>
  readonly giveUp: () => void
  waiting: number
}

export function createWaking(wake: Wake, log: Logger): Waking {
  const underway = new Map<string, Attempt>()

  function begin(key: string, request: WakeRequest): Attempt {
    const stop = new AbortController()
    const forget = () => {
      if (underway.get(key) === attempt) underway.delete(key)
    }
    const result = wake(request, stop.signal)
      .catch((error: unknown): WakeResult => {
        if (!stop.signal.aborted) log.error({ err: error, event: 'edge.wake' }, 'wake failed')
        return { kind: 'not_found' }
      })
      .finally(forget)
    const giveUp = () => {
      forget()
      stop.abort()
    }
    const attempt: Attempt = { result, giveUp, waiting: 0 }
    underway.set(key, attempt)
    return attempt
  }

  return {
    async wake(request, signal) {
      signal.throwIfAborted()
      const { sandboxId, port, accessToken, trafficToken } = request
      const key = JSON.stringify([sandboxId, port === envdPort, accessToken, trafficToken])
      const attempt = underway.get(key) ?? begin(key, request)
      attempt.waiting += 1
      try {
        return await unlessAborted(attempt.result, signal)
      } finally {
        attempt.waiting -= 1
        if (attempt.waiting === 0) attempt.giveUp()
      }
    },
  }
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(new Error('given up', { cause: signal.reason }))
    signal.addEventListener('abort', abort, { once: true })
    work.finally(() => signal.removeEventListener('abort', abort)).then(resolve, reject)
  })
}
