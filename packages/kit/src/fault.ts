/** The one error type for failures we foresaw. Statuses and Connect codes are chosen from `kind` at the border. */

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

/** A failure we foresaw: `message` is safe to show, `cause` is for our logs only. */
export class Fault extends Error {
  override readonly name = 'Fault'
  readonly kind: FaultKind
  readonly reason: string

  constructor(kind: FaultKind, reason: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
    this.reason = reason
  }

  /** Whatever we did not foresee becomes `internal`, and its text stays on our side. */
  static from(thrown: unknown): Fault {
    if (thrown instanceof Fault) return thrown
    return new Fault('internal', 'internal', 'Internal error', { cause: thrown })
  }
}
