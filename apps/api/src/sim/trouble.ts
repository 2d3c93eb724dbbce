import { ConnectError } from '@connectrpc/connect'
import type { Code } from '@connectrpc/connect'

/** Operations that a simulated node can fail or delay. */
export type Work =
  | 'create'
  | 'name'
  | 'kill'
  | 'pause'
  | 'keepMemory'
  | 'resume'
  | 'network'
  | 'snapshot'
  | 'deleteSnapshot'
  | 'build'
  | 'deleteTemplate'
  | 'putFiles'

export interface Trouble {
  /**
   * Makes later calls fail; undefined makes them succeed again. `after`: the operation takes effect, but returns an
   * error.
   */
  fail(work: Work | 'all', code: Code | undefined, when?: 'after'): void
  /** Blocks later calls until the returned function is called. */
  hold(work: Work): () => void
  /** Number of calls so far. */
  begun(work: Work): number
  /** Throws if all operations are set to fail. */
  refuse(): void
  /** Blocks or fails the call as configured. */
  meet(work: Work, when?: 'after'): Promise<void>
}

export function createTrouble(): Trouble {
  const failures = new Map<string, Code>()
  const gates = new Map<Work, Promise<void>>()
  const begun = new Map<Work, number>()
  const refuse = (key = 'all') => {
    const code = failures.get('all') ?? failures.get(key)
    if (code !== undefined) throw new ConnectError('simulated failure', code)
  }
  const keyOf = (work: string, when?: 'after') => (when ? `${work} after` : work)
  return {
    fail(work, code, when) {
      for (const key of [keyOf(work), keyOf(work, 'after')]) failures.delete(key)
      if (code !== undefined) failures.set(keyOf(work, when), code)
    },
    hold(work) {
      const { promise, resolve } = Promise.withResolvers<void>()
      gates.set(work, promise)
      return () => {
        gates.delete(work)
        resolve()
      }
    },
    begun: (work) => begun.get(work) ?? 0,
    refuse: () => refuse(),
    async meet(work, when) {
      if (!when) begun.set(work, (begun.get(work) ?? 0) + 1)
      refuse()
      if (!when) await gates.get(work)
      refuse(keyOf(work, when))
    },
  }
}
