import { Fault } from '@atoll/kit/fault'
import type { ObjectStore } from '../object-store.ts'

/** Object store in memory, for tests. It passes the same contract as the S3 client. */
export interface MemoryStore extends ObjectStore {
  readonly objects: Map<string, Buffer>
  /** Makes all calls fail until it is called with false. */
  setDown(isDown: boolean): void
  /** Time of the store. Objects that tests put into `objects` count as written at 0. */
  clockMs: number
  /** Called before each change, for tests that interrupt or observe. */
  onChange: (operation: 'create' | 'upload' | 'delete', key: string) => void | Promise<void>
}

export function createMemoryStore(): MemoryStore {
  const objects = new Map<string, Buffer>()
  const written = new Map<string, number>()
  let isDown = false
  const check = (signal?: AbortSignal) => {
    signal?.throwIfAborted()
    if (isDown) throw new Fault('unavailable', 'objects_unavailable', 'the store is down')
  }
  const store: MemoryStore = {
    objects,
    clockMs: 0,
    ...queries(objects, check),
    ...clockQueries(() => store, written),
    setDown: (next) => void (isDown = next),
    onChange: () => {},

    async create(key, body, signal) {
      check(signal)
      await store.onChange('create', key)
      if (objects.has(key)) return false
      objects.set(key, Buffer.from(body))
      written.set(key, store.clockMs)
      return true
    },

    async upload(key, body, signal) {
      check(signal)
      const chunks = []
      for await (const chunk of body) chunks.push(Buffer.from(chunk))
      await store.onChange('upload', key)
      check(signal)
      objects.set(key, Buffer.concat(chunks))
      written.set(key, store.clockMs)
    },

    async read(key, maxBytes, signal) {
      check(signal)
      const body = objects.get(key)
      if (body && body.length > maxBytes) throw new Error(`${key} is larger than ${maxBytes} bytes`)
      return body && Buffer.from(body)
    },

    async open(key, signal) {
      check(signal)
      const body = objects.get(key)
      return body && piecesOf(body)
    },

    async delete(keys, signal) {
      check(signal)
      for (const key of keys) {
        await store.onChange('delete', key)
        objects.delete(key)
        written.delete(key)
      }
    },
  }
  return store
}

function clockQueries(
  store: () => MemoryStore,
  written: ReadonlyMap<string, number>,
): Pick<ObjectStore, 'nowMs' | 'ageMs'> {
  return {
    async nowMs(signal) {
      await store().list('', signal)
      return store().clockMs
    },

    async ageMs(key, signal) {
      if ((await store().size(key, signal)) === undefined) return undefined
      return store().clockMs - (written.get(key) ?? 0)
    },
  }
}

function queries(
  objects: ReadonlyMap<string, Buffer>,
  check: (signal?: AbortSignal) => void,
): Pick<ObjectStore, 'size' | 'list' | 'listAfter' | 'abandonUploads'> {
  const keysWith = (prefix: string) =>
    [...objects.keys()].filter((key) => key.startsWith(prefix)).toSorted()
  return {
    async size(key, signal) {
      check(signal)
      return objects.get(key)?.length
    },

    async list(prefix, signal) {
      check(signal)
      return keysWith(prefix)
    },

    async listAfter(prefix, after, signal) {
      check(signal)
      return keysWith(prefix)
        .filter((key) => key > after)
        .slice(0, 1_000)
    },

    async abandonUploads(_prefix, signal) {
      check(signal)
    },
  }
}

async function* piecesOf(body: Buffer): AsyncGenerator<Buffer> {
  const step = 64 * 1024
  for (let at = 0; at < body.length; at += step) yield body.subarray(at, at + step)
}
