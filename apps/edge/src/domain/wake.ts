/** Asks the api to resume a paused sandbox. The api decides which sandboxes wake, and for which callers. */
export type Wake = (request: WakeRequest, signal: AbortSignal) => Promise<WakeResult>

export interface WakeRequest {
  readonly sandboxId: string
  readonly port: number
  /** Tokens as the caller sent them. */
  readonly accessToken: string | undefined
  readonly trafficToken: string | undefined
}

export interface WakeResult {
  /**
   * `running`: the sandbox runs. `not_found`: no such sandbox, or it may not be woken. `forbidden`: the caller may not
   * wake it. `conflict`: it has been changing its state for too long. `limit`: its team runs too many sandboxes.
   * `unavailable`: no api answers.
   */
  readonly kind: 'running' | 'not_found' | 'forbidden' | 'conflict' | 'limit' | 'unavailable'
  /** Message to show to the caller. */
  readonly message?: string | undefined
}
