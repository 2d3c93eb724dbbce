import { basename, join } from 'node:path'
import { randomHex } from '@atoll/kit/id'
import { damagedObject } from '@atoll/objects/frames'
import { readFacts } from '@atoll/objects/manifest'
import { z } from 'zod'
import type { StepLayers } from '../step-layers.ts'
import type { Claims } from './claims.ts'
import type { Marks } from './marks.ts'
import { removeFolder } from './transfers.ts'
import type { Transfers } from './transfers.ts'

/** Layers in the object store. Each is a bundle of its own, which all templates on top of it share. */
export interface ObjectLayers {
  /** Uploads a layer and all below it that the store does not have. */
  upload(layer: string, signal: AbortSignal): Promise<void>
  /** Fetches a layer and all below it that this node does not have. */
  fetch(layer: string): Promise<void>
  /** Whether the store has a layer of this node and all below, and keeps them for days at least. */
  isStored(layer: string, signal: AbortSignal): Promise<boolean>
}

/** Layers of Debian packages are named after their content, and have no record. */
export interface BaseLayers {
  readonly dir: string
  has(name: string): Promise<boolean>
  /** Moves a folder to its final name, the hash of its content. Returns the name. */
  commit(folder: string): Promise<string>
  /** Start of the names of folders that are being filled; the next start of the node removes them. */
  readonly workPrefix: string
}

export const LayerFacts = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('base') }),
  z.object({
    kind: z.literal('step'),
    below: z.string().exactOptional(),
    key: z.string(),
    sizeBytes: z.number(),
  }),
])

const nameOfBase = /^sha256-[0-9a-f]{64}$/
const nameOfStep = /^s[a-z0-9]{12}$/

interface LayerPorts {
  readonly transfers: Transfers
  readonly marks: Marks
  readonly claims: Claims
  readonly steps: Pick<StepLayers, 'adopt' | 'chain' | 'describe' | 'use'>
  readonly base: BaseLayers
}

export function createObjectLayers(ports: LayerPorts): ObjectLayers {
  const { transfers, marks, steps, base } = ports
  const underway = new Map<string, Promise<void>>()

  // A fetch needs the layer before a record names it.
  const hasLayer = async (name: string) =>
    steps.use(name) || (nameOfBase.test(name) && (await base.has(name)))

  async function fetchOne(name: string): Promise<void> {
    if (await hasLayer(name)) return
    if (!nameOfBase.test(name) && !nameOfStep.test(name)) throw damagedObject()
    const manifest = await transfers.find(pathOf(name))
    const facts = readFacts(manifest, LayerFacts)
    if (facts.kind === 'base') {
      const work = join(base.dir, `${base.workPrefix}${randomHex(6)}`)
      await transfers.download(manifest, 'files', work)
      const committed = await base.commit(work)
      if (committed !== name) throw damagedObject()
    } else {
      const { kind: _kind, ...layer } = facts
      if (layer.below !== undefined) await fetch(layer.below)
      await steps.adopt(name, layer, async (work) => {
        // The folder exists already, and an unpacked one replaces it.
        await removeFolder(work)
        await transfers.download(manifest, 'files', work)
      })
    }
    await marks.add('layers', name)
  }

  /** Requests for the same layer share one download. */
  function fetch(name: string): Promise<void> {
    const known = underway.get(name)
    if (known) return known
    const fetching = fetchOne(name).finally(() => underway.delete(name))
    underway.set(name, fetching)
    return fetching
  }

  return {
    async upload(layer, signal) {
      for (const folder of steps.chain(layer)) await uploadOne(ports, folder, signal)
    },
    fetch,
    async isStored(layer, signal) {
      for (const folder of steps.chain(layer)) {
        if (!(await ports.claims.claim(pathOf(basename(folder)), signal))) return false
      }
      return true
    },
  }
}

async function uploadOne(
  { transfers, marks, claims, steps }: LayerPorts,
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  const name = basename(folder)
  // Also with a mark: layers that nothing needed for some time are removed from the store.
  if ((await claims.claim(pathOf(name), signal)) && marks.has('layers', name)) return
  const step = steps.describe(name)
  const facts = step ? { kind: 'step', ...step } : { kind: 'base' }
  await transfers.upload({ path: pathOf(name), facts, folders: { files: folder } }, signal)
  await marks.add('layers', name)
}

function pathOf(name: string): string {
  return `layers/${name}`
}

/** Whether a bundle with this path is a layer. A bucket without a prefix may have objects of others. */
export function isLayerPath(path: string): boolean {
  const name = path.replace(/^layers\//, '')
  return path === pathOf(name) && (nameOfBase.test(name) || nameOfStep.test(name))
}
