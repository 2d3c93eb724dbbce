import { lstat } from 'node:fs/promises'
import type { Stats } from 'node:fs'
import { join } from 'node:path'
import type { Rootfs } from './app/cells.ts'
import type { CellRecord } from './domain/cell.ts'
import type { Runtime } from './domain/sandbox.ts'
import type { RootfsStore } from './linux/rootfs.ts'
import type { ShiftedLayers } from './linux/shifted-layers.ts'

/** Mounts cells on the layers of their templates. */
export function createTemplateRootfs(parts: {
  readonly rootfs: RootfsStore
  readonly runtime: Runtime
  /** Folders of a layer and of all below it, the lowest first. */
  readonly chain: (layer: string) => readonly string[]
  readonly shifted: ShiftedLayers
  readonly nameservers: readonly string[]
}): (cell: CellRecord, image: string) => Promise<Rootfs> {
  const { runtime, shifted } = parts
  return async ({ cellId, layer }, image) => {
    const chain = parts.chain(layer)
    const layers = runtime.idShift === 0 ? chain : await Promise.all(chain.map(shifted.ensure))
    const path = await parts.rootfs.mount({
      cellId,
      image,
      layers,
      nameservers: parts.nameservers,
      idShift: runtime.idShift,
    })
    return { path, hasSudo: await hasSudo(chain) }
  }
}

/** Threats: layers are strangers' files, so no link in them is followed. */
async function hasSudo(layers: readonly string[]): Promise<boolean> {
  for (const layer of layers.toReversed()) {
    const found = await lookFor(layer, ['usr', 'bin', 'sudo'])
    if (found) return found.isFile()
  }
  return false
}

/** Undefined where a layer says nothing of it; one that says it is gone has a device there. */
async function lookFor(layer: string, path: readonly string[]): Promise<Stats | undefined> {
  let at = layer
  let found: Stats | undefined
  for (const name of path) {
    if (found && !found.isDirectory()) return undefined
    at = join(at, name)
    found = await lstat(at).catch(() => undefined)
    if (!found) return undefined
  }
  return found
}
