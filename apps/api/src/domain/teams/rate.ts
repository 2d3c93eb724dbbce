/** Rate limits of teams, shared by all apis on a store. */

/** Maximum number of requests per team and operation in a time window. */
export interface RateLimit {
  readonly requests: number
  readonly seconds: number
}

/** Requests that one api adds to the current window of a team and an operation. */
export interface RateCount {
  readonly teamId: string
  readonly operationId: string
  readonly requests: number
  /** Length of a window. */
  readonly seconds: number
  /** End of the window, unless another api has begun one. */
  readonly endsAt: Date
}

/** Window of a team and an operation, with the requests of all apis. */
export interface SharedWindow {
  readonly teamId: string
  readonly operationId: string
  readonly requests: number
  readonly endsAt: Date
}

export interface RateStore {
  /** Adds counts, one for each team and operation. Returns their windows in any order. */
  add(counts: readonly RateCount[], now: Date): Promise<SharedWindow[]>
  deleteEndedBefore(time: Date): Promise<void>
}

/**
 * Returns how many requests an api grants before it has added them to the store. All other apis together exceed a limit by
 * at most this many each, so it is a part of what is left, and nothing for the last requests.
 */
export function freeShare(left: number, apiCount: number): number {
  if (left < apiCount) return 0
  return Math.max(1, Math.floor(left / (freePart * apiCount)))
}

const freePart = 4
