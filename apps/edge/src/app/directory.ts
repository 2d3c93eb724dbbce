/**
 * Which sandboxes run and where: a cache of what the node says, that can be thrown away.
 *
 * Addresses are given to other sandboxes later, so a stale entry would send one sandbox's traffic to another.
 * Therefore entries are trusted only while the watch is in step with the node, an address has one holder, and
 * an answer that crossed with a change is asked for again.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import type {
  CutReason,
  RunningSandbox,
  SandboxChange,
  SandboxPlace,
  SandboxSource,
} from '../domain/sandbox.ts'
import { createEntry } from './entry.ts'
import type { Entry } from './entry.ts'

export interface Directory {
  /** How many passes are open, to all sandboxes. */
  readonly open: number
  /** Undefined when no such sandbox runs, or it is being paused. Throws an `unavailable` fault when the node cannot be asked. */
  find(id: string): RunningSandbox | Promise<RunningSandbox | undefined>
  /** Stops watching and cuts everything that is open. */
  close(): Promise<void>
}

export function createDirectory(source: SandboxSource, log: Logger): Directory {
  const stop = new AbortController()
  const running = new Map<string, Entry>()
  const holders = new Map<string, Entry>()
  const lookups = new Map<string, Promise<RunningSandbox | undefined>>()
  /** Ids that are being asked for and have seen a change since: the answer under way may be old. */
  const crossed = new Set<string>()
  let round = 0
  let inStep = false
  const passes = { open: 0 }
  const watching = watch()

  return {
    get open() {
      return passes.open
    },

    find(id) {
      const known = inStep ? running.get(id) : undefined
      // One that is being paused may run again before the news of it is here.
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
        round += 1
        for (const id of lookups.keys()) crossed.add(id)
        for await (const change of source.watch(stop.signal)) {
          apply(change)
          if (change.kind === 'synced') failures = 0
        }
      } catch (error) {
        if (!stop.signal.aborted) log.warn({ err: error, event: 'edge.watch' }, 'lost the node')
      }
      inStep = false
      await sleep(Math.min(100 * 2 ** failures, 5_000), undefined, { signal: stop.signal }).catch(
        () => {}, // closing
      )
    }
  }

  function apply(change: SandboxChange): void {
    if (change.kind === 'started') put(change.sandbox)
    else if (change.kind === 'pausing') {
      if (lookups.has(change.id)) crossed.add(change.id)
      running.get(change.id)?.setPausing(true)
    } else if (change.kind === 'ended') drop(change.id)
    else {
      for (const entry of running.values()) if (entry.round !== round) drop(entry.id)
      inStep = true
    }
  }

  function put(place: SandboxPlace): Entry {
    const { id, address } = place
    const known = running.get(id)
    if (known?.address === address) {
      known.round = round
      known.ingress = place.ingress
      known.setPausing(place.isPausing)
      return known
    }
    drop(id)
    const former = holders.get(address)
    if (former) drop(former.id)
    const entry = createEntry(place, round, passes)
    running.set(id, entry)
    holders.set(address, entry)
    return entry
  }

  function drop(id: string, reason: CutReason = 'ended'): void {
    if (lookups.has(id)) crossed.add(id)
    const entry = running.get(id)
    if (!entry) return
    running.delete(id)
    holders.delete(entry.address)
    entry.end(reason)
  }

  function lookUp(id: string): Promise<RunningSandbox | undefined> {
    const answer = ask(id).finally(() => {
      lookups.delete(id)
      crossed.delete(id)
    })
    lookups.set(id, answer)
    return answer
  }

  async function ask(id: string): Promise<RunningSandbox | undefined> {
    for (let attempt = 0; attempt < 3; attempt += 1) {
      crossed.delete(id)
      const place = await source.get(id, stop.signal)
      if (crossed.has(id)) continue
      if (place) {
        const entry = put(place)
        return entry.isPausing ? undefined : entry
      }
      drop(id)
      return undefined
    }
    throw new Fault('unavailable', 'sandbox_unsettled', 'The sandbox keeps changing its place')
  }
}
