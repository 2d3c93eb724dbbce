import { signal } from '@preact/signals'
import type { Signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { recordReads } from './reads.ts'
import type { Reads } from './reads.ts'
import { openWatch } from './watch.ts'
import type { Watch } from './watch.ts'

/** Data from the server with its age. After a failure the last data stays, and the error is beside it. */
export interface Resource<Data> {
  readonly data: Data | undefined
  readonly error: Error | undefined
  /** Time of the last success, in Unix milliseconds. */
  readonly loadedAt: number | undefined
  reload(): Promise<void>
  /** Loads what is missing: answers that were read before are taken as they are. */
  extend(): Promise<void>
}

interface Entry {
  readonly state: Signal<Omit<Resource<unknown>, 'reload' | 'extend'>>
  users: number
  load: (signal: AbortSignal, show: (data: unknown) => void) => Promise<unknown>
  everyMs: number | undefined
  timer: ReturnType<typeof setTimeout> | undefined
  running: AbortController | undefined
  watch: Watch | undefined
  /** Answers of the last load, also of one that was aborted. */
  reads: Reads | undefined
}

const entries = new Map<string, Entry>()
const empty = { data: undefined, error: undefined, loadedAt: undefined }
const maxKept = 200

/**
 * Loads data by a key that names it. With `everyMs` it is live: the server checks that often, and sends what changed. Without
 * a live connection the page asks again itself.
 */
export function useResource<Data>(
  key: string,
  load: (signal: AbortSignal, show: (data: Data) => void) => Promise<Data>,
  everyMs?: number,
): Resource<Data> {
  const entry = entryOf(key)
  entry.load = load
  entry.everyMs = everyMs
  useEffect(() => {
    entry.users += 1
    if (entry.users === 1) void refresh(entry)
    return () => {
      entry.users -= 1
      if (entry.users > 0) return
      stop(entry)
    }
  }, [key])
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the key fixes the type of the data
  const data = entry.state.value.data as Data | undefined
  return {
    ...{ ...entry.state.value, data },
    reload: () => refresh(entry),
    extend: () => refresh(entry, knownOf(entry)),
  }
}

/** Loads again what is on the page, for example after a change. */
export async function reloadAll(prefix = ''): Promise<void> {
  const used = [...entries].filter(([key, { users }]) => users > 0 && key.startsWith(prefix))
  await Promise.all(used.map(([, entry]) => refresh(entry)))
}

/** Forgets everything, for example at sign-out. */
export function forgetAll(): void {
  for (const entry of entries.values()) stop(entry)
  entries.clear()
}

function entryOf(key: string): Entry {
  const known = entries.get(key)
  if (known) return known
  for (const [old, { users }] of entries) {
    if (entries.size < maxKept) break
    if (users === 0) entries.delete(old)
  }
  const made: Entry = {
    state: signal(empty),
    users: 0,
    load: async () => undefined,
    everyMs: undefined,
    timer: undefined,
    running: undefined,
    watch: undefined,
    reads: undefined,
  }
  entries.set(key, made)
  return made
}

function stop(entry: Entry): void {
  clearTimeout(entry.timer)
  entry.running?.abort()
  unwatch(entry)
}

function unwatch(entry: Entry): void {
  entry.watch?.close()
  entry.watch = undefined
}

function knownOf({ reads }: Entry): Reads['known'] {
  return new Map([...(reads?.known ?? []), ...(reads?.used ?? [])])
}

/** `known` are answers that the live connection has sent. */
async function refresh(entry: Entry, known: Reads['known'] = new Map()): Promise<void> {
  clearTimeout(entry.timer)
  entry.running?.abort()
  const running = new AbortController()
  entry.running = running
  const reads = recordReads(running.signal, known)
  entry.reads = reads
  try {
    const show = (data: unknown) => {
      if (entry.state.value.data === undefined) entry.state.value = { ...empty, data }
    }
    const data = await entry.load(running.signal, show)
    if (running.signal.aborted) return
    entry.state.value = { data, error: undefined, loadedAt: Date.now() }
    watch(entry, reads)
  } catch (error) {
    if (running.signal.aborted) return
    entry.state.value = {
      ...entry.state.value,
      error: error instanceof Error ? error : new Error(String(error)),
    }
    unwatch(entry)
    schedule(entry)
  }
}

/** Follows what was loaded over the live connection, or by asking again. */
function watch(entry: Entry, reads: Reads): void {
  if (entry.everyMs === undefined || entry.users === 0) return
  if (entry.watch) return entry.watch.follow(reads)
  entry.watch = openWatch(reads, entry.everyMs, {
    onChange: (answers) => void refresh(entry, answers),
    onLost() {
      unwatch(entry)
      schedule(entry)
    },
  })
  if (!entry.watch) schedule(entry)
}

function schedule(entry: Entry): void {
  clearTimeout(entry.timer)
  if (entry.everyMs === undefined || entry.users === 0) return
  entry.timer = setTimeout(() => {
    if (document.visibilityState === 'visible') void refresh(entry)
    else schedule(entry)
  }, entry.everyMs)
}
