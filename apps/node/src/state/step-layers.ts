import { mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { syncFolder, writeFileAtomic } from '@atoll/kit/atomic-file'
import { randomHex, randomLabel } from '@atoll/kit/id'
import { z } from 'zod'
import { quarantinedFault } from '../domain/quarantine.ts'
import type { Quarantined } from '../domain/quarantine.ts'
import { encodeRecord, listNames, readRecord } from './record-file.ts'

/** What steps of builds left in the files, each a folder that lies over the one of the step before. */
export interface StepLayers {
  /** The folders of a layer and of all below it, the lowest first. A fault when the record of one cannot be read. */
  chain(name: string): string[]
  listQuarantined(): readonly Quarantined[]
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

const format = { schema: Stored, upgrades: [] }

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
  const scan = await scanStepLayers(dir)
  for (const [name, layer] of scan.layers) know(name, layer)
  const { quarantined } = scan
  // A leftover that cannot be removed takes room, and does no other harm.
  for (const path of scan.leftovers) await parts.removeFolder(path).catch(() => {})

  function know(name: string, layer: Layer): void {
    layers.set(name, layer)
    const rival = layers.get(byKey.get(layer.key) ?? '')
    if (!rival || rival.usedAtMs <= layer.usedAtMs) byKey.set(layer.key, name)
  }

  async function forget(name: string): Promise<void> {
    const key = layers.get(name)?.key ?? ''
    layers.delete(name)
    if (byKey.get(key) === name) byKey.delete(key)
    await parts.onRemove(folder(name))
    // Renamed first: a folder without a record that was not being removed is damaged, and is kept.
    const doomed = folder(`${unfinished}${name}-${randomHex(4)}`)
    await rename(folder(name), doomed)
    await rm(record(name), { force: true })
    await parts.removeFolder(doomed)
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
      const damaged = chain.find((one) => quarantined.some(({ path }) => path === folder(one)))
      if (damaged !== undefined) throw quarantinedFault(`Layer ${damaged}`)
      return chain.map((one) => (layers.has(one) ? folder(one) : parts.baseDir(one)))
    },

    listQuarantined: () => quarantined,

    depth: (name) => namesBelow(name).length,

    sizeBytes: (name) =>
      namesBelow(name).reduce((sum, one) => sum + (layers.get(one)?.sizeBytes ?? 0), 0),

    async find(key) {
      const name = byKey.get(key)
      const layer = name === undefined ? undefined : layers.get(name)
      if (name === undefined || !layer) return undefined
      const used = { ...layer, usedAtMs: nowMs() }
      layers.set(name, used)
      await writeFileAtomic(record(name), encodeRecord(used, format))
      return name
    },

    async add(layer, write) {
      const name = `s${randomLabel(12)}`
      const work = folder(`${unfinished}${name}`)
      await mkdir(work, { mode: 0o755 })
      try {
        const sizeBytes = await write(work)
        const known = { ...layer, sizeBytes, usedAtMs: nowMs() }
        // The name promises content and record, so both reach the disk before the name does.
        await parts.flush(work)
        await writeFileAtomic(record(name), encodeRecord(known, format))
        await rename(work, folder(name))
        await syncFolder(dir)
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

/** Reads the folder and changes nothing. */
export async function scanStepLayers(dir: string): Promise<{
  readonly layers: ReadonlyMap<string, Layer>
  readonly quarantined: readonly Quarantined[]
  /** Half-written and half-removed layers, and records whose layer never came to be. */
  readonly leftovers: readonly string[]
}> {
  const layers = new Map<string, Layer>()
  const quarantined: Quarantined[] = []
  const leftovers: string[] = []
  const names = await listNames(dir)
  const present = new Set(names)
  for (const name of names) {
    if (name.startsWith(unfinished) || name.endsWith('.tmp')) {
      leftovers.push(join(dir, name))
    } else if (name.endsWith('.json')) {
      if (!present.has(name.slice(0, -'.json'.length))) leftovers.push(join(dir, name))
    } else {
      const reading = await readRecord(join(dir, `${name}.json`), format)
      if (reading.state === 'read') {
        layers.set(name, reading.record)
        continue
      }
      const reason = reading.state === 'absent' ? `${name}.json is missing` : reading.reason
      quarantined.push({ kind: 'layer', path: join(dir, name), reason })
    }
  }
  return { layers, quarantined, leftovers }
}
