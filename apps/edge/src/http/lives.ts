import type { Duplex } from 'node:stream'
import { Socket } from 'node:net'
import type { RunningSandbox } from '../domain/sandbox.ts'

/** What is open for one client ends with the client, and is reset when the sandbox ends. */
export interface Lives {
  /** Aborted when this pass is over, for whatever reason. */
  readonly signal: AbortSignal
  /** Ends the pass. */
  readonly release: () => void
}

export function bindLives(client: Duplex, sandbox: RunningSandbox): Lives {
  const over = new AbortController()
  const release = () => {
    detach()
    client.off('close', release)
    over.abort()
  }
  // A client may send requests ahead on one connection; each of them listens here.
  client.setMaxListeners(0)
  client.once('close', release)
  const detach = sandbox.attach(() => reset(client))
  if (client.destroyed) release()
  return { signal: over.signal, release }
}

/** An abrupt end: a clean one would look to the client like a stream that is complete. */
export function reset(client: Duplex): void {
  if (client instanceof Socket) client.resetAndDestroy()
  else client.destroy()
}
