/**
 * Cache of the running sandboxes of one node and their addresses, filled by a watch on the node.
 *
 * The node reuses addresses, so a stale entry would send traffic of one sandbox to another. Therefore entries are
 * trusted only while the watch is in sync, an address belongs to one entry, and a lookup that raced with a change is
 * repeated.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import type { RunningSandbox, SandboxChange, SandboxSource } from '../domain/sandbox.ts'
import { createEntries, createEntryIndex } from './entries.ts'
import type { EntryIndex } from './entries.ts'
import type { Entry } from './entry.ts'

export interface Directory {
  /** Number of open connections to all sandboxes. */
  readonly open: number
  /** Returns undefined if the sandbox does not run or is being paused. Faults: `unavailable` if the node does not answer. */
  find(id: string): RunningSandbox | Promise<RunningSandbox | undefined>
  /** Stops the watch and disconnects all clients. */
  close(): Promise<void>
}

export interface NodeDirectory extends Directory {
  find(id: string): Entry | Promise<Entry | undefined>
}

export function createDirectory(
  source: SandboxSource,
  log: Logger,
  index: EntryIndex = createEntryIndex(),
): NodeDirectory {
  const stop = new AbortController()
  const lookups = new Map<string, Promise<Entry | undefined>>()
  /** IDs whose pending lookup raced with a change, so its result may be stale. */
  const outdatedLookups = new Set<string>()
  let isSynced = false
  const noteChange = (id: string) => {
    if (lookups.has(id)) outdatedLookups.add(id)
  }
  const entries = createEntries({ index, isTrusted: () => isSynced, onDrop: noteChange })
  const watching = watch()

  return {
    get open() {
      return index.connections.open
    },

    find(id) {
      const known = isSynced ? entries.get(id) : undefined
      // A sandbox that is being paused may run again before the watch reports it.
      if (known && !known.isPausing) return known
      return lookups.get(id) ?? lookUp(id)
    },

    async close() {
      stop.abort()
      await watching
      for (const id of entries.ids()) entries.drop(id, 'closing')
    },
  }

  async function watch(): Promise<void> {
    for (let failures = 0; !stop.signal.aborted; failures += 1) {
      try {
        entries.beginRound()
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
    if (change.kind === 'started') entries.put(change.sandbox)
    else if (change.kind === 'pausing') {
      noteChange(change.id)
      entries.get(change.id)?.setPausing(true)
    } else if (change.kind === 'ended') entries.drop(change.id)
    else {
      entries.dropUnreported()
      isSynced = true
    }
  }

  function lookUp(id: string): Promise<Entry | undefined> {
    const answer = ask(id).finally(() => {
      lookups.delete(id)
      outdatedLookups.delete(id)
    })
    lookups.set(id, answer)
    return answer
  }

  async function ask(id: string): Promise<Entry | undefined> {
    for (let attempt = 0; attempt < 3; attempt += 1) {
      outdatedLookups.delete(id)
      const location = await source.get(id, stop.signal)
      if (outdatedLookups.has(id)) continue
      if (location) {
        const entry = entries.put(location)
        return entry.isPausing ? undefined : entry
      }
      entries.drop(id)
      return undefined
    }
    throw new Fault(
      'unavailable',
      'sandbox_unsettled',
      'The sandbox changed its state three times during the lookup. Try again.',
    )
  }
}
