import { mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileAtomic } from '@atoll/kit/atomic-file'
import { randomLabel } from '@atoll/kit/id'
import { z } from 'zod'
import { listNames, readStored } from './stored.ts'

/** What steps of builds left in the files, each a folder that lies over the one of the step before. */
export interface StepLayers {
  /** The folders of a layer and of all below it, the lowest first. */
  chain(name: string): string[]
  /** The layer of an earlier build that did just this. */
  find(key: string): Promise<string | undefined>
  /** `write` fills the folder and gives what that takes; the layer is there once it is whole, or not at all. */
  add(layer: NewLayer, write: (dir: string) => Promise<number>): Promise<string>
  /** How many lie over each other. */
  depth(name: string): number
  /** What those together take on the disk that steps made. */
  sizeBytes(name: string): number
  /** Removes those that are neither in `used` nor below one that is, and have not been of use to a build lately. */
  sweep(used: ReadonlySet<string>, nowMs: number): Promise<void>
}

export interface NewLayer {
  /** The layer below it; undefined: there is none. */
  readonly below: string | undefined
  readonly key: string
}

const Stored = z.object({
  below: z.string().optional(),
  key: z.string(),
  sizeBytes: z.number(),
  /** When a build was last glad of it. */
  usedAtMs: z.number(),
})

type Layer = z.infer<typeof Stored>

/** How long a layer waits for another build that begins with the same steps. */
const keptMs = 24 * 60 * 60 * 1000
/** No name of a layer begins so. */
const unfinished = '.'

export async function openStepLayers(parts: {
  readonly dir: string
  /** Where a layer is that no step made. */
  readonly baseDir: (name: string) => string
  readonly nowMs: () => number
  /** Removes a folder of a stranger's files, whatever is in it. */
  readonly removeFolder: (dir: string) => Promise<void>
  /** Brings what is in a folder to the disk. */
  readonly flush: (dir: string) => Promise<void>
  /** Before a layer goes. */
  readonly onRemove: (dir: string) => Promise<void>
}): Promise<StepLayers> {
  const { dir, nowMs } = parts
  const layers = new Map<string, Layer>()
  const byKey = new Map<string, string>()
  const folder = (name: string) => join(dir, name)
  const record = (name: string) => join(dir, `${name}.json`)

  await mkdir(dir, { recursive: true, mode: 0o700 })
  const names = await listNames(dir)
  const present = new Set(names)
  for (const name of names.filter((one) => present.has(`${one}.json`))) {
    const stored = await readStored(record(name), Stored)
    if (stored) know(name, stored)
  }
  // The record comes last and goes first: a folder without one is nobody's, and a record without a folder is none.
  for (const name of names) {
    if (layers.has(name.replace(/\.json$/, ''))) continue
    // One that cannot be removed takes room, and no more.
    await parts.removeFolder(join(dir, name)).catch(() => {})
  }

  function know(name: string, layer: Layer): void {
    layers.set(name, layer)
    const rival = layers.get(byKey.get(layer.key) ?? '')
    if (!rival || rival.usedAtMs <= layer.usedAtMs) byKey.set(layer.key, name)
  }

  async function forget(name: string): Promise<void> {
    const key = layers.get(name)?.key ?? ''
    layers.delete(name)
    if (byKey.get(key) === name) byKey.delete(key)
    await rm(record(name), { force: true })
    await parts.onRemove(folder(name))
    await parts.removeFolder(folder(name))
  }

  function namesBelow(name: string): string[] {
    const chain: string[] = []
    for (let at: string | undefined = name; at !== undefined; at = layers.get(at)?.below) {
      chain.push(at)
    }
    return chain
  }

  return {
    chain(name) {
      const chain = namesBelow(name).toReversed()
      return chain.map((one) => (layers.has(one) ? folder(one) : parts.baseDir(one)))
    },

    depth: (name) => namesBelow(name).length,

    sizeBytes: (name) =>
      namesBelow(name).reduce((sum, one) => sum + (layers.get(one)?.sizeBytes ?? 0), 0),

    async find(key) {
      const name = byKey.get(key)
      const layer = name === undefined ? undefined : layers.get(name)
      if (name === undefined || !layer) return undefined
      const used = { ...layer, usedAtMs: nowMs() }
      layers.set(name, used)
      await writeFileAtomic(record(name), JSON.stringify(used))
      return name
    },

    async add(layer, write) {
      const name = `s${randomLabel(12)}`
      const work = folder(`${unfinished}${name}`)
      await mkdir(work, { mode: 0o755 })
      try {
        const sizeBytes = await write(work)
        const known = { ...layer, sizeBytes, usedAtMs: nowMs() }
        // The record promises the content, so the content reaches the disk before the record does.
        await parts.flush(work)
        await rename(work, folder(name))
        await writeFileAtomic(record(name), JSON.stringify(known))
        know(name, known)
        return name
      } catch (error) {
        // The first reason is the one to tell; what is left goes at the next start.
        await parts.removeFolder(work).catch(() => {})
        throw error
      }
    },

    async sweep(used, now) {
      const findUnused = () => {
        const recent = [...layers].filter(([, { usedAtMs }]) => now - usedAtMs < keptMs)
        const kept = new Set([...used, ...recent.map(([top]) => top)].flatMap(namesBelow))
        return [...layers.keys()].find((name) => !kept.has(name))
      }
      // Asked anew after each: one that goes takes its time, and builds go on meanwhile.
      for (let name = findUnused(); name !== undefined; name = findUnused()) await forget(name)
    },
  }
}
