import { ConnectError } from '@connectrpc/connect'
import type { Code } from '@connectrpc/connect'

/** Operations that a simulated node can fail or delay. */
export type Operation =
  | 'create'
  | 'get'
  | 'watch'
  | 'name'
  | 'kill'
  | 'pause'
  | 'keepMemory'
  | 'resume'
  | 'fetch'
  | 'findStored'
  | 'network'
  | 'snapshot'
  | 'deleteSnapshot'
  | 'build'
  | 'deleteTemplate'
  | 'install'
  | 'listCatalogue'
  | 'putFiles'

export interface FailureInjector {
  /**
   * Makes later calls fail; undefined makes them succeed again. `after`: the operation takes effect, but returns an
   * error.
   */
  fail(operation: Operation | 'all', code: Code | undefined, when?: 'after'): void
  /** Blocks later calls until the returned function is called. */
  hold(operation: Operation): () => void
  /** Number of calls so far. */
  begun(operation: Operation): number
  /** Throws if all operations are set to fail. */
  throwIfDown(): void
  /** Blocks or fails the call as configured. */
  apply(operation: Operation, when?: 'after'): Promise<void>
}

export function createFailureInjector(): FailureInjector {
  const failures = new Map<string, Code>()
  const gates = new Map<Operation, Promise<void>>()
  const begun = new Map<Operation, number>()
  const throwIfFailing = (key = 'all') => {
    const code = failures.get('all') ?? failures.get(key)
    if (code !== undefined) throw new ConnectError('simulated failure', code)
  }
  const keyOf = (operation: string, when?: 'after') => (when ? `${operation} after` : operation)
  return {
    fail(operation, code, when) {
      for (const key of [keyOf(operation), keyOf(operation, 'after')]) failures.delete(key)
      if (code !== undefined) failures.set(keyOf(operation, when), code)
    },
    hold(operation) {
      const { promise, resolve } = Promise.withResolvers<void>()
      gates.set(operation, promise)
      return () => {
        gates.delete(operation)
        resolve()
      }
    },
    begun: (operation) => begun.get(operation) ?? 0,
    throwIfDown: () => throwIfFailing(),
    async apply(operation, when) {
      if (!when) begun.set(operation, (begun.get(operation) ?? 0) + 1)
      throwIfFailing()
      if (!when) await gates.get(operation)
      throwIfFailing(keyOf(operation, when))
    },
  }
}
