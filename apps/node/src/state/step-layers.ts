import { mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { syncFolder, writeFileAtomic } from '@atoll/kit/atomic-file'
import { randomHex, randomLabel } from '@atoll/kit/id'
import { z } from 'zod'
import { quarantinedFault } from '../domain/sandboxes/quarantine.ts'
import type { Quarantined } from '../domain/sandboxes/quarantine.ts'
import { encodeRecord, listNames, readRecord } from './record-file.ts'

/** File changes of build steps. Each layer is a folder stacked on the layer of the previous step. */
export interface StepLayers {
  /** Folders of a layer and all layers below, lowest first. Throws a fault when one of the records cannot be read. */
  chain(name: string): string[]
  listQuarantined(): readonly Quarantined[]
  /** Returns the cached layer with this key and marks it as used. */
  find(key: string): Promise<string | undefined>
  /** Adds a layer atomically. `write` fills its folder and returns the bytes it takes. Returns the layer's name. */
  add(layer: NewLayer, write: (dir: string) => Promise<number>): Promise<string>
  /** Whether the layer is here. Counts as a use: sweeps of this process keep it, and all below, for a day. */
  use(name: string): boolean
  /** Returns what another node has to know of a layer; undefined if there is none, or it is not a step layer. */
  describe(name: string): MovableLayer | undefined
  /**
   * Adds a layer of another node under its name, atomically. `write` fills its folder. The layer below must be there.
   * Succeeds if there is such a layer.
   */
  adopt(name: string, layer: MovableLayer, write: (dir: string) => Promise<void>): Promise<void>
  /** Number of stacked layers. */
  depth(name: string): number
  /** Bytes on disk of the layer and those below, without the base layer. */
  sizeBytes(name: string): number
  /** Bytes on disk of these layers and all below, each counted once, without the layers of `except` and all below them. */
  sizeOfAll(names: readonly string[], except: readonly string[]): number
  /** Removes layers that no used layer needs and that no build has used within the last day. */
  sweep(used: ReadonlySet<string>, nowMs: number): Promise<void>
}

export interface NewLayer {
  /** Layer below; undefined for the lowest. */
  readonly below: string | undefined
  readonly key: string
}

/** A layer as it is known on all nodes. */
export interface MovableLayer {
  readonly below?: string
  readonly key: string
  readonly sizeBytes: number
}

const Stored = z.object({
  below: z.string().optional(),
  key: z.string(),
  sizeBytes: z.number(),
  /** Last use by a build. */
  usedAtMs: z.number(),
})

type Layer = z.infer<typeof Stored>

const format = { schema: Stored, upgrades: [] }

/** How long to keep an unused layer for another build that begins with the same steps. */
const keptMs = 24 * 60 * 60 * 1000
/** Name prefix of layers that are being written or removed. */
const unfinished = '.'

export async function openStepLayers(parts: {
  readonly dir: string
  /** Returns the folder of a layer that is not a step layer. */
  readonly baseDir: (name: string) => string
  readonly nowMs: () => number
  /** Removes a folder with untrusted files. */
  readonly removeFolder: (dir: string) => Promise<void>
  /** Syncs the files of a folder to disk. */
  readonly flush: (dir: string) => Promise<void>
  /** Called before a layer is removed. */
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
  // A leftover that cannot be removed only wastes space.
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

    sizeOfAll(names, except) {
      const counted = new Set(names.flatMap(namesBelow)).difference(
        new Set(except.flatMap(namesBelow)),
      )
      return [...counted].reduce((sum, name) => sum + (layers.get(name)?.sizeBytes ?? 0), 0)
    },

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
      know(name, await commitStep(parts, { name, layer }, write))
      return name
    },

    use(name) {
      const layer = layers.get(name)
      if (layer) layers.set(name, { ...layer, usedAtMs: nowMs() })
      return layer !== undefined
    },

    describe: (name) => describeLayer(layers.get(name)),

    async adopt(name, { below, key, sizeBytes }, write) {
      if (layers.has(name)) return
      // A crash of an earlier attempt leaves nothing: starts remove unfinished folders.
      const layer = { below, key }
      const fill = async (work: string) => (await write(work), sizeBytes)
      know(name, await commitStep(parts, { name, layer }, fill))
    },

    async sweep(used, now) {
      const findUnused = () => {
        const recent = [...layers].filter(([, { usedAtMs }]) => now - usedAtMs < keptMs)
        const kept = new Set([...used, ...recent.map(([top]) => top)].flatMap(namesBelow))
        return [...layers.keys()].find((name) => !kept.has(name))
      }
      // Search again after each removal: removals are slow, and builds continue meanwhile.
      for (let name = findUnused(); name !== undefined; name = findUnused()) await forget(name)
    },
  }
}

function describeLayer(layer: Layer | undefined): MovableLayer | undefined {
  if (!layer) return undefined
  const { below, key, sizeBytes } = layer
  return { ...(below !== undefined && { below }), key, sizeBytes }
}

/** Writes a layer and its record. `write` fills the folder and returns the bytes it takes. */
async function commitStep(
  parts: {
    readonly dir: string
    readonly nowMs: () => number
    readonly flush: (dir: string) => Promise<void>
    readonly removeFolder: (dir: string) => Promise<void>
  },
  { name, layer }: { readonly name: string; readonly layer: NewLayer },
  write: (dir: string) => Promise<number>,
): Promise<Layer> {
  const { dir, nowMs } = parts
  const work = join(dir, `${unfinished}${name}`)
  await mkdir(work, { mode: 0o755 })
  try {
    const sizeBytes = await write(work)
    const known = { ...layer, sizeBytes, usedAtMs: nowMs() }
    // The name promises content and record, so both reach the disk before the name does.
    await parts.flush(work)
    await writeFileAtomic(join(dir, `${name}.json`), encodeRecord(known, format))
    await rename(work, join(dir, name))
    await syncFolder(dir)
    return known
  } catch (error) {
    // Rethrow the original error; the next start removes leftovers.
    await parts.removeFolder(work).catch(() => {})
    throw error
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
