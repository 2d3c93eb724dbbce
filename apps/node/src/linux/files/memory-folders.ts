import { createReadStream, createWriteStream } from 'node:fs'
import { readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib'
import { syncFolder } from '@atoll/kit/atomic-file'
import { limitConcurrency } from '@atoll/kit/limit-concurrency'

/**
 * Folders with the memory of paused sandboxes and snapshots. Files are written and read uncompressed, which is fast,
 * and compressed when idle. Each file is complete at any moment, compressed or not. Compression yields to all users: it
 * aborts when its own folder is used, and pauses while any other folder is used.
 */
export interface MemoryFolders {
  /** Decompresses the folder and keeps it so until `work` is done. */
  use<T>(dir: string, work: () => Promise<T>): Promise<T>
  /** Makes one pass over `dirs` and compresses folders that were not used for `idleMs`. */
  packIdle(dirs: readonly string[], idleMs: number): Promise<void>
}

const packedEnding = '.zst'
const unfinishedEnding = '.next'
/** Smaller files are not worth compressing. */
const leastBytes = 64 * 1024
/** Limit on concurrent decompressions: each takes a whole core. */
const unpacksAtOnce = 2

export function createMemoryFolders(nowMs: () => number): MemoryFolders {
  const users = new Map<string, number>()
  const lastUsedMs = new Map<string, number>()
  const unpacking = new Map<string, Promise<void>>()
  const gate = limitConcurrency(unpacksAtOnce)
  /** Current compression; at most one runs. */
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

  /** Counts a folder as used now when it is seen for the first time: its last use is unknown. */
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
    // Users of the folder wait for the end of the compression, whether it failed or not.
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

/** Compresses files until `wanted` aborts; the remaining files stay uncompressed. Awaits `turn` before each chunk. */
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
  /** Awaited before each chunk. */
  readonly turn?: () => Promise<void>
}

/** Converts a file. Syncs the result to disk before it deletes the source. */
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
