/**
 * Answers that one load of a resource has read. The live connection watches them, and the next load takes from it what
 * has changed, and from here what has not.
 */
export interface ReadAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
  /** Changes with the content. */
  readonly tag: string
}

export interface Reads {
  /** Answers that need no request, by path. */
  readonly known: ReadonlyMap<string, ReadAnswer>
  readonly used: Map<string, ReadAnswer>
}

const bySignal = new WeakMap<AbortSignal, Reads>()

/** Records the reads of a load, which passes its signal to every request. */
export function recordReads(signal: AbortSignal, known: ReadonlyMap<string, ReadAnswer>): Reads {
  const reads = { known, used: new Map<string, ReadAnswer>() }
  bySignal.set(signal, reads)
  return reads
}

export function readsOf(signal: AbortSignal | undefined): Reads | undefined {
  return signal && bySignal.get(signal)
}
