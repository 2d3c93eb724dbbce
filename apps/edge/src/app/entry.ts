import type { Ingress } from '../domain/ingress.ts'
import type { DisconnectReason, RunningSandbox, SandboxLocation } from '../domain/sandbox.ts'

export interface Entry extends RunningSandbox {
  /** Number of the watch that last reported this sandbox. */
  watchRound: number
  ingress: Ingress
  readonly generation: number
  /** Whether the entry is current: the watch on its node is in sync. */
  isTrusted(): boolean
  readonly isPausing: boolean
  /** Notifies all open connections. */
  setPausing(isPausing: boolean): void
  /** Disconnects all open connections, and later ones when they attach. */
  end(reason: DisconnectReason): void
}

/** `connections.open` counts the open connections of all entries. */
export function createEntry(
  location: SandboxLocation,
  parts: Pick<Entry, 'watchRound' | 'isTrusted'> & { readonly connections: { open: number } },
): Entry {
  const { watchRound, isTrusted, connections } = parts
  const listeners = new Set<(reason: DisconnectReason) => void>()
  let ended: DisconnectReason | undefined
  let { isPausing } = location
  return {
    ...location,
    ...{ watchRound, isTrusted },
    get open() {
      return listeners.size
    },
    get isPausing() {
      return isPausing
    },
    setPausing(is) {
      if (is && !isPausing) for (const onDisconnect of listeners) onDisconnect('pausing')
      isPausing = is
    },
    attach(onDisconnect) {
      if (ended) {
        queueMicrotask(onDisconnect.bind(undefined, ended))
        return () => {}
      }
      listeners.add(onDisconnect)
      connections.open += 1
      if (isPausing) queueMicrotask(() => listeners.has(onDisconnect) && onDisconnect('pausing'))
      return () => {
        if (listeners.delete(onDisconnect)) connections.open -= 1
      }
    },
    end(reason) {
      ended = reason
      for (const onDisconnect of listeners) onDisconnect(reason)
      connections.open -= listeners.size
      listeners.clear()
    },
  }
}
