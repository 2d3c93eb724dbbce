import type { DisconnectReason, SandboxLocation } from '../domain/sandbox.ts'
import { createEntry } from './entry.ts'
import type { Entry } from './entry.ts'

/**
 * Running sandboxes of one node. The node reuses addresses, so an address belongs to one entry, and an entry to one
 * generation of a sandbox.
 */
export interface Entries {
  get(id: string): Entry | undefined
  ids(): Iterable<string>
  put(location: SandboxLocation): Entry
  drop(id: string, reason?: DisconnectReason): void
  /** Begins a watch. `dropUnreported` then drops what the watch has not reported. */
  beginRound(): void
  dropUnreported(): void
}

/** Sandboxes of all nodes. A sandbox is on two nodes only while an old one has not noticed that it was replaced. */
export interface EntryIndex {
  /** Total of open connections. */
  readonly connections: { open: number }
  add(entry: Entry): void
  remove(entry: Entry): void
  /** Returns the entry with the newest generation. */
  newest(id: string): Entry | undefined
}

export function createEntryIndex(): EntryIndex {
  const all = new Map<string, readonly Entry[]>()
  return {
    connections: { open: 0 },
    add(entry) {
      const others = all.get(entry.id) ?? []
      all.set(
        entry.id,
        [...others, entry].toSorted((a, b) => b.generation - a.generation),
      )
    },
    remove(entry) {
      const others = (all.get(entry.id) ?? []).filter((other) => other !== entry)
      if (others.length > 0) all.set(entry.id, others)
      else all.delete(entry.id)
    },
    newest: (id) => all.get(id)?.[0],
  }
}

interface EntriesParts {
  readonly index: EntryIndex
  /** Whether the watch is in sync, so that the entries are current. */
  readonly isTrusted: () => boolean
  /** Called before each drop, even if there is no such entry. */
  readonly onDrop: (id: string) => void
}

export function createEntries({ index, isTrusted, onDrop }: EntriesParts): Entries {
  const running = new Map<string, Entry>()
  const byAddress = new Map<string, Entry>()
  let round = 0

  function drop(id: string, reason: DisconnectReason = 'ended'): void {
    onDrop(id)
    const entry = running.get(id)
    if (!entry) return
    running.delete(id)
    byAddress.delete(entry.address)
    index.remove(entry)
    entry.end(reason)
  }

  return {
    get: (id) => running.get(id),
    ids: () => running.keys(),
    put(location) {
      const { id, address, generation } = location
      const known = running.get(id)
      if (known?.address === address && known.generation === generation) {
        known.watchRound = round
        known.ingress = location.ingress
        known.setPausing(location.isPausing)
        return known
      }
      drop(id)
      const former = byAddress.get(address)
      if (former) drop(former.id)
      const entry = createEntry(location, {
        watchRound: round,
        isTrusted,
        connections: index.connections,
      })
      running.set(id, entry)
      byAddress.set(address, entry)
      index.add(entry)
      return entry
    },
    drop,
    beginRound: () => void (round += 1),
    dropUnreported() {
      for (const entry of running.values()) if (entry.watchRound !== round) drop(entry.id)
    },
  }
}
