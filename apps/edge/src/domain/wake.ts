/** Asks whoever owns the records to bring back a sandbox that does not run. Which ones wake, and for whom, is theirs. */
export type Wake = (request: WakeRequest, signal: AbortSignal) => Promise<WakeResult>

export interface WakeRequest {
  readonly sandboxId: string
  readonly port: number
  /** As the caller sent them. */
  readonly accessToken: string | undefined
  readonly trafficToken: string | undefined
}

export interface WakeResult {
  /**
   * `running`: it runs, of whatever cause. `not_found`: there is none, or it is not to be woken. `forbidden`: not by
   * this caller. `conflict`: it is changing its state for too long. `limit`: the team runs too many already.
   */
  readonly kind: 'running' | 'not_found' | 'forbidden' | 'conflict' | 'limit'
  /** For the caller's eyes. */
  readonly message?: string | undefined
}
