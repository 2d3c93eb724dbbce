import { createReadStream, createWriteStream } from 'node:fs'
import { readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib'
import { createGate } from '@atoll/kit/gate'

/**
 * Folders with the memory of paused sandboxes and snapshots. They are written and read as they are, which is quick, and
 * packed when nobody has needed them for a while. At any moment a file is there whole, packed or not.
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

export function createMemoryFolders(nowMs: () => number): MemoryFolders {
  const users = new Map<string, number>()
  const lastUsedMs = new Map<string, number>()
  /** Packing and unpacking take a whole processor: one at a time, and never two on one folder. */
  const gate = createGate(1)
  let packing: { readonly dir: string; readonly stop: AbortController } | undefined

  function leave(dir: string): void {
    const left = (users.get(dir) ?? 1) - 1
    if (left > 0) users.set(dir, left)
    else users.delete(dir)
    lastUsedMs.set(dir, nowMs())
  }

  /** One that is seen for the first time was written a moment ago, or before we started. */
  function isIdle(dir: string, idleMs: number): boolean {
    const sinceMs = lastUsedMs.get(dir) ?? nowMs()
    lastUsedMs.set(dir, sinceMs)
    return !users.has(dir) && nowMs() - sinceMs >= idleMs
  }

  async function packOne(dir: string): Promise<void> {
    const stop = new AbortController()
    packing = { dir, stop }
    try {
      await pack(dir, stop.signal)
    } finally {
      packing = undefined
    }
  }

  return {
    async use(dir, work) {
      users.set(dir, (users.get(dir) ?? 0) + 1)
      try {
        // What is packed at this moment does not look so yet, but would be gone in the next.
        const isBeingPacked = packing?.dir === dir
        if (isBeingPacked) packing?.stop.abort()
        if (isBeingPacked || (await packedFiles(dir)).length > 0) await gate(() => unpack(dir))
        return await work()
      } finally {
        leave(dir)
      }
    },

    async packIdle(dirs, idleMs) {
      for (const dir of dirs) {
        await gate(async () => {
          if (isIdle(dir, idleMs)) await packOne(dir)
        })
      }
      const known = new Set(dirs)
      for (const dir of lastUsedMs.keys()) if (!known.has(dir)) lastUsedMs.delete(dir)
    },
  }
}

async function packedFiles(dir: string): Promise<string[]> {
  const names = await readdir(dir).catch(() => [])
  return names.filter((name) => name.endsWith(packedEnding))
}

/** Leaves the rest as it is when somebody wants the folder. */
async function pack(dir: string, wanted: AbortSignal): Promise<void> {
  for (const name of await readdir(dir).catch(() => [])) {
    if (name.endsWith(packedEnding) || name.endsWith(unfinishedEnding)) continue
    const path = join(dir, name)
    const { size } = await stat(path)
    if (size < leastBytes) continue
    if (wanted.aborted) return
    const level = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }
    const done = convert(path, `${path}${packedEnding}`, createZstdCompress(level), wanted)
    await done.catch((error: unknown) => {
      if (!wanted.aborted) throw error
    })
  }
}

async function unpack(dir: string): Promise<void> {
  for (const name of await packedFiles(dir)) {
    const path = join(dir, name)
    await convert(path, path.slice(0, -packedEnding.length), createZstdDecompress())
  }
}

/** The result is on the disk before the source goes. */
async function convert(
  from: string,
  to: string,
  how: NodeJS.ReadWriteStream,
  signal?: AbortSignal,
): Promise<void> {
  const unfinished = `${to}${unfinishedEnding}`
  const source = createReadStream(from, { highWaterMark: 1024 * 1024 })
  const target = createWriteStream(unfinished, { mode: 0o600, flush: true })
  try {
    await pipeline(source, how, target, { ...(signal && { signal }) })
  } catch (error) {
    await rm(unfinished, { force: true })
    throw error
  }
  await rename(unfinished, to)
  await rm(from)
}
