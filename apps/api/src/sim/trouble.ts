import { ConnectError } from '@connectrpc/connect'
import type { Code } from '@connectrpc/connect'

/** What a simulated node can be told to fail at, or to be slow at. */
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
  /** From now on; `undefined` makes it work again. `after`: the work is done, but the answer is a failure. */
  fail(work: Work | 'all', code: Code | undefined, when?: 'after'): void
  /** From now on it waits before its end, until the returned function is called. */
  hold(work: Work): () => void
  /** How often such work was begun since the start. */
  begun(work: Work): number
  /** Throws when everything fails. */
  refuse(): void
  /** Waits and fails as was told. */
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
