/** Converts file changes to messages of the Filesystem service. */
import { posix } from 'node:path'
import type { MessageInitShape } from '@bufbuild/protobuf'
import { EventType } from '@atoll/contracts/gen/filesystem/filesystem_pb'
import type { FilesystemEventSchema } from '@atoll/contracts/gen/filesystem/filesystem_pb'
import type { OpenWatch, WatchRequest } from '../../app/watchers.ts'
import type { Entries, Entry } from '../../domain/files/entry.ts'
import type { Change, ChangeKind } from '../../domain/watch/watch.ts'
import { toEntryInfo } from '../files/entry-info.ts'
import { abortReason } from '../wire/streams.ts'

type EventInit = MessageInitShape<typeof FilesystemEventSchema>

/** Yields a start event, then changes and keepalives, until the caller disconnects or the watch fails. */
export async function* streamChanges(
  watch: OpenWatch,
  entries: Entries,
  options: { readonly signal: AbortSignal; readonly keepaliveMs: number },
) {
  const { signal, keepaliveMs } = options
  const close = () => watch.close()
  signal.addEventListener('abort', close, { once: true })
  try {
    if (signal.aborted) throw abortReason(signal)
    yield { event: { case: 'start', value: {} } } as const
    for (;;) {
      const next = await watch.queue.next(keepaliveMs)
      if (next === undefined || signal.aborted) throw abortReason(signal)
      if (next === 'idle') {
        yield { event: { case: 'keepalive', value: {} } } as const
        continue
      }
      const [value = {}] = await toEvents([next], watch.request, entries)
      yield { event: { case: 'filesystem', value } } as const
    }
  } finally {
    signal.removeEventListener('abort', close)
    watch.close()
  }
}

/** Converts changes to events. If the request asks for entries, adds the entry of each file that still exists. */
export async function toEvents(
  changes: readonly Change[],
  { path, includeEntry }: WatchRequest,
  entries: Entries,
): Promise<EventInit[]> {
  const currentEntries = new Map<string, Entry | undefined>()
  if (includeEntry) {
    const names = new Set(changes.filter(({ kind }) => hasEntry[kind]).map(({ name }) => name))
    for (const batch of batches([...names])) {
      const described = await Promise.all(
        batch.map((name) => entries.describe(posix.join(path, name)).catch(() => undefined)),
      )
      for (const [index, name] of batch.entries()) currentEntries.set(name, described[index])
    }
  }
  return changes.map(({ name, kind }) => {
    const entry = hasEntry[kind] ? currentEntries.get(name) : undefined
    return { name, type: eventType[kind], ...(entry && { entry: toEntryInfo(entry) }) }
  })
}

function* batches(names: readonly string[]): Generator<readonly string[]> {
  for (let index = 0; index < names.length; index += 64) yield names.slice(index, index + 64)
}

/** Whether the changed file can still exist. */
const hasEntry = {
  create: true,
  write: true,
  chmod: true,
  rename: false,
  remove: false,
} as const satisfies Record<ChangeKind, boolean>

const eventType = {
  create: EventType.CREATE,
  write: EventType.WRITE,
  remove: EventType.REMOVE,
  rename: EventType.RENAME,
  chmod: EventType.CHMOD,
} as const satisfies Record<ChangeKind, EventType>
