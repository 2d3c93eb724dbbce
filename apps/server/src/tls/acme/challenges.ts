/** One proof that the CA asks for: that this server controls a host name. */
export interface Challenge {
  /** Host name without `*.`. */
  readonly hostName: string
  readonly token: string
  /** Text that the CA expects to read. */
  readonly value: string
}

/** Publishes proofs where the CA reads them. */
export interface ChallengeResponder {
  readonly type: 'http-01' | 'dns-01'
  /** Resolves once the CA can read the proof. */
  add(challenge: Challenge, signal: AbortSignal): Promise<void>
  remove(challenge: Challenge): Promise<void>
}
