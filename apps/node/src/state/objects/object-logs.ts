import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import { damagedObject } from '@atoll/objects/frames'
import { newerObject } from '@atoll/objects/manifest'
import type { ObjectKeys } from '@atoll/objects/manifest'
import type { ObjectStore } from '@atoll/objects/object-store'
import { z } from 'zod'
import { logKeptMs, logLevels, selectEntries } from '../../domain/sandboxes/log.ts'
import type { LogEntry, StoredLogs } from '../../domain/sandboxes/log.ts'

/**
 * Logs of sandboxes in the object store: `logs/<day>/<sandbox>/<time of the last entry>.<node>`, encrypted. The day is that
 * of the last entry, so the oldest objects come first in a list of all, and a sweep reads no more than it removes.
 */
export interface ObjectLogs extends StoredLogs {
  /**
   * Removes logs that were written more than 7 days ago, with a last entry of a day that ended more than 7 days ago, both by
   * the clock of the store. Keeps and reports logs that cannot be read.
   */
  sweep(signal: AbortSignal): Promise<void>
}

interface ObjectLogPorts {
  readonly store: Pick<
    ObjectStore,
    'create' | 'read' | 'list' | 'listAfter' | 'nowMs' | 'ageMs' | 'delete'
  >
  readonly keys: ObjectKeys
  /** ID of this node. */
  readonly nodeId: string
  /** Time of this node. Reads go by it, removals do not. */
  nowMs(): number
  onError(error: unknown, key: string): void
}

const newestFormat = 1
const Stored = z.object({
  format: z.int().min(1),
  /** JSON lines, compressed. */
  lines: z.base64().optional(),
})

const Entry = z.object({
  at: z.number(),
  level: z.enum(logLevels),
  message: z.string(),
  fields: z.record(z.string(), z.string()),
})

const keyPattern = /^logs\/(\d{4}-\d\d-\d\d)\/([a-z0-9]+)\/(\d+)\.([0-9a-zA-Z-]+)$/
const dayMs = 24 * 60 * 60 * 1000
/** The oldest entries beyond this limit are left out. A log on disk is about half as long at most. */
const maxTextBytes = 4 * 1024 * 1024
/** Text that does not compress is encoded in base64 twice. */
const maxObjectBytes = 2 * maxTextBytes
/** Logs in memory at a time. */
const readsAtOnce = 8

export function createObjectLogs(ports: ObjectLogPorts): ObjectLogs {
  const { store, nodeId, nowMs } = ports
  const gate = limitConcurrency(readsAtOnce)
  const keyOf = (sandboxId: string, lastAt: number) =>
    `${prefixOf(dayOf(lastAt), sandboxId)}${lastAt}.${nodeId}`

  /** Returns undefined when the object has gone. */
  async function open(key: string, signal: AbortSignal): Promise<Buffer | undefined> {
    const sealed = await store.read(key, maxObjectBytes, signal)
    return sealed && openObject(ports.keys, sealed, key)
  }

  return {
    async upload({ sandboxId, entries }, signal) {
      const last = entries.at(-1)
      if (!last) return
      const key = keyOf(sandboxId, last.at)
      // Refused if it is there: a crash may have come between an upload and its note.
      await store.create(key, await sealObject(ports.keys, entries, key), signal)
    },

    remove: (sandboxId, lastAt, signal) => store.delete([keyOf(sandboxId, lastAt)], signal),

    async read(query, signal) {
      const { sandboxId, fromMs = 0 } = query
      const lists = await Promise.all(
        keptDays(nowMs()).map((day) => store.list(prefixOf(day, sandboxId), signal)),
      )
      const uploads = lists
        .flat()
        .map(parseKey)
        .filter((upload) => upload !== undefined)
        .filter(({ lastAt }) => lastAt >= nowMs() - logKeptMs)
      if (uploads.length === 0) return undefined
      // Nodes that had the sandbox after each other have some entries in common.
      const entries = new Map<number, LogEntry>()
      for (const { key, lastAt } of uploads) {
        if (lastAt < fromMs) continue
        const lines = await gate(() => open(key, signal), signal)
        for (const entry of lines ? parseLines(lines) : []) entries.set(entry.at, entry)
      }
      const inOrder = [...entries.values()].toSorted((a, b) => a.at - b.at)
      return selectEntries(inOrder, query)
    },

    sweep: (signal) => sweep(ports, open, signal),
  }
}

async function sweep(
  { store, onError }: ObjectLogPorts,
  open: (key: string, signal: AbortSignal) => Promise<Buffer | undefined>,
  signal: AbortSignal,
): Promise<void> {
  const firstKeptDay = dayOf((await store.nowMs(signal)) - logKeptMs)
  const gate = limitConcurrency(readsAtOnce)
  /** The day in a key is that of the clock of the node that wrote it, so the age counts too. */
  const isRemovable = async ({ key }: LogKey): Promise<boolean> => {
    try {
      if (((await store.ageMs(key, signal)) ?? 0) <= logKeptMs) return false
      return (await open(key, signal)) !== undefined
    } catch (error) {
      if (signal.aborted) throw error
      onError(error, key)
      return false
    }
  }
  let after = ''
  do {
    const page = await store.listAfter('logs/', after, signal)
    const logs = page.map(parseKey).filter((one) => one !== undefined)
    const expired = logs.filter(({ day }) => day < firstKeptDay)
    const removable = await Promise.all(expired.map((one) => gate(() => isRemovable(one), signal)))
    const removed = expired.filter((_, index) => removable[index]).map(({ key }) => key)
    if (removed.length > 0) await store.delete(removed, signal)
    // The days that follow are kept too.
    after = logs.length > expired.length ? '' : (page.at(-1) ?? '')
  } while (after !== '')
}

interface LogKey {
  readonly key: string
  readonly day: string
  readonly lastAt: number
}

/** Returns undefined for the keys of other things. */
function parseKey(key: string): LogKey | undefined {
  const [, day, , last] = keyPattern.exec(key) ?? []
  return day === undefined ? undefined : { key, day, lastAt: Number(last) }
}

function prefixOf(day: string, sandboxId: string): string {
  return `logs/${day}/${sandboxId}/`
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

/** Returns the days of the last entries of logs that are kept. A burst of entries runs ahead of the clock. */
function keptDays(nowMs: number): string[] {
  const days = new Set<string>()
  for (let ms = nowMs - logKeptMs; ms <= nowMs + dayMs; ms += dayMs) days.add(dayOf(ms))
  return [...days]
}

async function sealObject(
  keys: ObjectKeys,
  entries: readonly LogEntry[],
  key: string,
): Promise<Buffer> {
  const lines = await promisify(gzip)(newestLines(entries))
  const text = JSON.stringify({ format: newestFormat, lines: lines.toString('base64') })
  using sealing = keys.beginWrite()
  return Buffer.from(sealing.seal(text, identityOf(key)))
}

/** Throws a fault when the key is missing, or the object is damaged, newer, or another one. */
async function openObject(keys: ObjectKeys, sealed: Buffer, key: string): Promise<Buffer> {
  const { success, data } = Stored.safeParse(
    JSON.parse(keys.open(sealed.toString('utf8'), identityOf(key))),
  )
  if (!success) throw damagedObject()
  if (data.format > newestFormat) throw newerObject(key)
  const lines = Buffer.from(data.lines ?? '', 'base64')
  return promisify(gunzip)(lines, { maxOutputLength: maxTextBytes })
}

function newestLines(entries: readonly LogEntry[]): string {
  const lines: string[] = []
  let bytes = 0
  for (const entry of entries.toReversed()) {
    const line = `${JSON.stringify(entry)}\n`
    bytes += Buffer.byteLength(line)
    if (bytes > maxTextBytes) break
    lines.push(line)
  }
  return lines.toReversed().join('')
}

function parseLines(text: Buffer): LogEntry[] {
  const lines = text.toString('utf8').split('\n').slice(0, -1)
  return lines.map((line) => Entry.parse(JSON.parse(line)))
}

function identityOf(key: string): string {
  return `object:${key}`
}
