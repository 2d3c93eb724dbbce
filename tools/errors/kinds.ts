import type { FaultKind } from '@atoll/kit/fault'

/** Advice on retries for clients, by the kind of the fault. */
export const kindAdvice = {
  invalid: 'No: correct the request',
  unauthenticated: 'No: correct the credentials',
  forbidden: 'No: ask for access',
  not_found: 'No',
  conflict:
    'Only if the message says that something is under way; otherwise look at the state and decide',
  exhausted: '`rate_limited`: after `Retry-After`; other limits: after you freed something',
  unavailable: 'Yes, with backoff, from `Retry-After` on',
  timeout: 'Yes, with backoff, after a look at the state',
  internal: 'Once; then report the error',
} as const satisfies Record<FaultKind, string>

export const kinds: readonly FaultKind[] = Object.keys(kindAdvice).filter(isKind)

function isKind(text: string): text is FaultKind {
  return text in kindAdvice
}
