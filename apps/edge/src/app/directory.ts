/**
 * Cache of running sandboxes and their addresses, filled by a watch on the node.
 *
 * The node reuses addresses, so a stale entry would send traffic of one sandbox to another. Therefore entries are
 * trusted only while the watch is in sync, an address belongs to one entry, and a lookup that raced with a change is
 * repeated.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import type {
  DisconnectReason,
  RunningSandbox,
  SandboxChange,
  SandboxLocation,
  SandboxSource,
} from '../domain/sandbox.ts'
import { createEntry } from './entry.ts'
import type { Entry } from './entry.ts'

export interface Directory {
  /** Number of open connections to all sandboxes. */
  readonly open: number
  /** Returns undefined if the sandbox does not run or is being paused. Faults: `unavailable` if the node does not answer. */
  find(id: string): RunningSandbox | Promise<RunningSandbox | undefined>
  /** Stops the watch and disconnects all clients. */
  close(): Promise<void>
}

export function createDirectory(source: SandboxSource, log: Logger): Directory {
  const stop = new AbortController()
  const running = new Map<string, Entry>()
  const byAddress = new Map<string, Entry>()
  const lookups = new Map<string, Promise<RunningSandbox | undefined>>()
  /** IDs whose pending lookup raced with a change, so its result may be stale. */
  const outdatedLookups = new Set<string>()
  let watchRound = 0
  let isSynced = false
  const connections = { open: 0 }
  const watching = watch()

  return {
    get open() {
      return connections.open
    },

    find(id) {
      const known = isSynced ? running.get(id) : undefined
      // A sandbox that is being paused may run again before the watch reports it.
      if (known && !known.isPausing) return known
      return lookups.get(id) ?? lookUp(id)
    },

    async close() {
      stop.abort()
      await watching
      for (const id of running.keys()) drop(id, 'closing')
    },
  }

  async function watch(): Promise<void> {
    for (let failures = 0; !stop.signal.aborted; failures += 1) {
      try {
        watchRound += 1
        for (const id of lookups.keys()) outdatedLookups.add(id)
        for await (const change of source.watch(stop.signal)) {
          apply(change)
          if (change.kind === 'synced') failures = 0
        }
      } catch (error) {
        if (!stop.signal.aborted)
          log.warn({ err: error, event: 'edge.watch' }, 'the watch on the node failed, retrying')
      }
      isSynced = false
      await sleep(Math.min(100 * 2 ** failures, 5_000), undefined, { signal: stop.signal }).catch(
        () => {}, // closing
      )
    }
  }

  function apply(change: SandboxChange): void {
    if (change.kind === 'started') put(change.sandbox)
    else if (change.kind === 'pausing') {
      if (lookups.has(change.id)) outdatedLookups.add(change.id)
      running.get(change.id)?.setPausing(true)
    } else if (change.kind === 'ended') drop(change.id)
    else {
      for (const entry of running.values()) if (entry.watchRound !== watchRound) drop(entry.id)
      isSynced = true
    }
  }

  function put(location: SandboxLocation): Entry {
    const { id, address } = location
    const known = running.get(id)
    if (known?.address === address) {
      known.watchRound = watchRound
      known.ingress = location.ingress
      known.setPausing(location.isPausing)
      return known
    }
    drop(id)
    const former = byAddress.get(address)
    if (former) drop(former.id)
    const entry = createEntry(location, watchRound, connections)
    running.set(id, entry)
    byAddress.set(address, entry)
    return entry
  }

  function drop(id: string, reason: DisconnectReason = 'ended'): void {
    if (lookups.has(id)) outdatedLookups.add(id)
    const entry = running.get(id)
    if (!entry) return
    running.delete(id)
    byAddress.delete(entry.address)
    entry.end(reason)
  }

  function lookUp(id: string): Promise<RunningSandbox | undefined> {
    const answer = ask(id).finally(() => {
      lookups.delete(id)
      outdatedLookups.delete(id)
    })
    lookups.set(id, answer)
    return answer
  }

  async function ask(id: string): Promise<RunningSandbox | undefined> {
    for (let attempt = 0; attempt < 3; attempt += 1) {
      outdatedLookups.delete(id)
      const location = await source.get(id, stop.signal)
      if (outdatedLookups.has(id)) continue
      if (location) {
        const entry = put(location)
        return entry.isPausing ? undefined : entry
      }
      drop(id)
      return undefined
    }
    throw new Fault(
      'unavailable',
      'sandbox_unsettled',
      'The sandbox changed its state three times during the lookup. Try again.',
    )
  }
}
