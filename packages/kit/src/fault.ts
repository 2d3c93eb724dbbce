/** Error type for expected failures. Servers derive HTTP statuses and Connect codes from `kind`. */

export type FaultKind =
  | 'invalid'
  | 'unauthenticated'
  | 'forbidden'
  | 'not_found'
  | 'conflict'
  | 'exhausted'
  | 'timeout'
  | 'unavailable'
  | 'internal'

/** Expected failure. `message` is safe to show to users; `cause` is only for our logs. */
export class Fault extends Error {
  override readonly name = 'Fault'
  readonly kind: FaultKind
  readonly reason: string

  constructor(kind: FaultKind, reason: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
    this.reason = reason
  }

  /** Wraps an unexpected error as `internal` and hides its text from users. */
  static from(thrown: unknown): Fault {
    if (thrown instanceof Fault) return thrown
    return new Fault('internal', 'internal', 'Internal error', { cause: thrown })
  }
}
