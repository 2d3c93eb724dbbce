import { setTimeout as sleep } from 'node:timers/promises'
import { nameOfContent } from '../../domain/sandboxes/content-name.ts'
import type { FetchRequest } from '../../domain/sandboxes/fetch-request.ts'

export interface FetchProgress {
  /** The sandbox is not here yet. */
  readonly isUnderway: boolean
  /** Grows as long as this node receives anything from the object store. */
  readonly receivedBytes: number
}

/** Fetches of sandboxes that take longer than a call: callers come back for the outcome. */
export interface SandboxFetches {
  /**
   * Begins a fetch, or joins the one of an equal request. Returns when the sandbox is here, or after `waitMs`. Throws the
   * failure of the fetch, also one that came between two calls; the next call begins anew.
   */
  fetch(request: FetchRequest, waitMs?: number): Promise<FetchProgress>
}

/** A failure that no caller comes back for is forgotten. */
const failureKeptMs = 60_000

export function createSandboxFetches(ports: {
  begin(request: FetchRequest): Promise<void>
  receivedBytes(): number
}): SandboxFetches {
  const underway = new Map<string, Promise<void>>()

  function begin(key: string, request: FetchRequest): Promise<void> {
    const fetching = ports.begin(request)
    underway.set(key, fetching)
    const forget = () => forgetFetch(key, fetching)
    fetching.then(forget, () => void setTimeout(forget, failureKeptMs).unref())
    return fetching
  }

  function forgetFetch(key: string, fetching: Promise<void>): void {
    if (underway.get(key) === fetching) underway.delete(key)
  }

  return {
    async fetch(request, waitMs) {
      const key = keyOf(request)
      const fetching = underway.get(key) ?? begin(key, request)
      try {
        const isHere = await isDoneWithin(fetching, waitMs)
        return { isUnderway: !isHere, receivedBytes: ports.receivedBytes() }
      } catch (error) {
        forgetFetch(key, fetching)
        throw error
      }
    },
  }
}

async function isDoneWithin(work: Promise<void>, waitMs: number | undefined): Promise<boolean> {
  const done = work.then(() => true)
  if (waitMs === undefined) return done
  const waiting = new AbortController()
  try {
    return await Promise.race([done, sleep(waitMs, false, { signal: waiting.signal })])
  } finally {
    waiting.abort()
  }
}

function keyOf(request: FetchRequest): string {
  const { sandboxId, generation, boot } = request
  return `${sandboxId} ${nameOfContent(request)} ${generation} ${boot}`
}
