/** Spaces out repeated attempts at the same sandbox: each failure doubles the wait until the next one. */
export interface Retries {
  /** Whether an attempt may begin now. */
  isDue(id: string): boolean
  failed(id: string): void
  succeeded(id: string): void
  /** Forgets sandboxes that were not tried again for a long time. */
  prune(): void
}

export function createRetries({
  leastMs,
  mostMs,
  nowMs = () => performance.now(),
}: {
  readonly leastMs: number
  readonly mostMs: number
  readonly nowMs?: () => number
}): Retries {
  const waits = new Map<string, { readonly waitMs: number; readonly until: number }>()
  return {
    isDue: (id) => nowMs() >= (waits.get(id)?.until ?? 0),
    failed(id) {
      const before = waits.get(id)?.waitMs ?? leastMs / 2
      const waitMs = Math.min(before * 2, mostMs)
      waits.set(id, { waitMs, until: nowMs() + waitMs })
    },
    succeeded: (id) => void waits.delete(id),
    prune() {
      for (const [id, { until }] of waits) if (nowMs() > until + mostMs) waits.delete(id)
    },
  }
}
