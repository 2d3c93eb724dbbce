import { createReadStream, createWriteStream } from 'node:fs'
import { readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib'
import { syncFolder } from '@atoll/kit/atomic-file'
import { limitConcurrency } from '@atoll/kit/limit-concurrency'

/**
 * Folders with the memory of paused sandboxes and snapshots. They are written and read as they are, which is quick, and
 * packed when nobody has needed them for a while. At any moment a file is there whole, packed or not. Packing gives way
 * to all who need a folder: to those of the folder that is being packed it is given up, for others it stands still.
 */
export interface MemoryFolders {
  /** Unpacks what is packed; it stays so until `work` is done. */
  use<T>(dir: string, work: () => Promise<T>): Promise<T>
  /** One pass over these: packs those that were not used for `idleMs`. */
  packIdle(dirs: readonly string[], idleMs: number): Promise<void>
}

const packedEnding = '.zst'
const unfinishedEnding = '.next'
/** Less is not worth a frame of its own. */
const leastBytes = 64 * 1024
/** Each takes a whole processor. */
const unpacksAtOnce = 2

export function createMemoryFolders(nowMs: () => number): MemoryFolders {
  const users = new Map<string, number>()
  const lastUsedMs = new Map<string, number>()
  const unpacking = new Map<string, Promise<void>>()
  const gate = limitConcurrency(unpacksAtOnce)
  /** One at a time. */
  let packing: Packing | undefined
  let whenUnused = Promise.withResolvers<void>()

  function leave(dir: string): void {
    const left = (users.get(dir) ?? 1) - 1
    if (left > 0) users.set(dir, left)
    else users.delete(dir)
    lastUsedMs.set(dir, nowMs())
    if (users.size > 0) return
    whenUnused.resolve()
    whenUnused = Promise.withResolvers()
  }

  async function makeReadable(dir: string): Promise<void> {
    if (packing?.dir === dir) {
      packing.stop.abort()
      await packing.done
    }
    if ((await packedFiles(dir)).length === 0) return
    const underway =
      unpacking.get(dir) ?? gate(() => unpack(dir)).finally(() => unpacking.delete(dir))
    unpacking.set(dir, underway)
    await underway
  }

  /** One that is seen for the first time was written a moment ago, or before we started. */
  function isIdle(dir: string, idleMs: number): boolean {
    const sinceMs = lastUsedMs.get(dir) ?? nowMs()
    lastUsedMs.set(dir, sinceMs)
    return !users.has(dir) && nowMs() - sinceMs >= idleMs
  }

  async function packOne(dir: string): Promise<void> {
    const stop = new AbortController()
    const stopped = new Promise((resolve) => stop.signal.addEventListener('abort', resolve))
    const untilUnused = async () => {
      const isBusy = () => users.size > 0 && !stop.signal.aborted
      while (isBusy()) await Promise.race([whenUnused.promise, stopped])
    }
    const packed = pack(dir, stop.signal, untilUnused)
    // Whoever waits for its end wants the folder, whatever the end was.
    packing = { dir, stop, done: packed.catch(() => {}) }
    try {
      await packed
    } finally {
      packing = undefined
    }
  }

  return {
    async use(dir, work) {
      users.set(dir, (users.get(dir) ?? 0) + 1)
      try {
        await makeReadable(dir)
        return await work()
      } finally {
        leave(dir)
      }
    },

    async packIdle(dirs, idleMs) {
      for (const dir of dirs) if (isIdle(dir, idleMs)) await packOne(dir)
      const known = new Set(dirs)
      for (const dir of lastUsedMs.keys()) if (!known.has(dir)) lastUsedMs.delete(dir)
    },
  }
}

interface Packing {
  readonly dir: string
  readonly stop: AbortController
  /** Never fails. */
  readonly done: Promise<void>
}

async function packedFiles(dir: string): Promise<string[]> {
  const names = await readdir(dir).catch(() => [])
  return names.filter((name) => name.endsWith(packedEnding))
}

/** Leaves the rest as it is when somebody wants the folder. `turn` is waited for again and again. */
async function pack(dir: string, wanted: AbortSignal, turn: () => Promise<void>): Promise<void> {
  for (const name of await readdir(dir).catch(() => [])) {
    if (name.endsWith(packedEnding) || name.endsWith(unfinishedEnding)) continue
    const path = join(dir, name)
    const { size } = await stat(path)
    if (size < leastBytes) continue
    if (wanted.aborted) return
    const level = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }
    const how = createZstdCompress(level)
    const done = convert(path, `${path}${packedEnding}`, { how, signal: wanted, turn })
    await done.catch((error: unknown) => {
      if (!wanted.aborted) throw error
    })
  }
}

async function unpack(dir: string): Promise<void> {
  for (const name of await packedFiles(dir)) {
    const path = join(dir, name)
    await convert(path, path.slice(0, -packedEnding.length), { how: createZstdDecompress() })
  }
}

interface Conversion {
  readonly how: NodeJS.ReadWriteStream
  readonly signal?: AbortSignal
  /** Waited for before each piece. */
  readonly turn?: () => Promise<void>
}

/** The result is on the disk before the source goes. */
async function convert(from: string, to: string, { how, signal, turn }: Conversion): Promise<void> {
  const unfinished = `${to}${unfinishedEnding}`
  const file = createReadStream(from, { highWaterMark: 1024 * 1024 })
  const source = turn ? Readable.from(piecemeal(file, turn), { highWaterMark: 1 }) : file
  const target = createWriteStream(unfinished, { mode: 0o600, flush: true })
  try {
    await pipeline(source, how, target, { ...(signal && { signal }) })
  } catch (error) {
    await rm(unfinished, { force: true })
    throw error
  }
  await rename(unfinished, to)
  await syncFolder(dirname(to))
  await rm(from)
}

async function* piecemeal(
  file: AsyncIterable<Buffer>,
  turn: () => Promise<void>,
): AsyncIterable<Buffer> {
  for await (const piece of file) {
    await turn()
    yield piece
  }
}
