import { lstat } from 'node:fs/promises'
import type { Stats } from 'node:fs'
import { join } from 'node:path'
import type { Rootfs } from '../app/lifecycle/cells.ts'
import type { CellRecord } from '../domain/sandboxes/cell.ts'
import type { RootfsStore } from '../linux/mounts/rootfs.ts'
import type { ShiftedLayers } from '../linux/mounts/shifted-layers.ts'
import type { Runtime } from '../domain/sandboxes/runtime.ts'

/** Returns a function that mounts a cell's root file system on the layers of its template. */
export function createTemplateRootfs(parts: {
  readonly rootfs: RootfsStore
  readonly runtime: Runtime
  /** Folders of a layer and all layers below, lowest first. */
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

/**
 * Tests whether /usr/bin/sudo is a regular file in the topmost layer that has this path. Threats: layers hold untrusted
 * files, so symbolic links in them are not followed.
 */
export async function hasSudo(layers: readonly string[]): Promise<boolean> {
  for (const layer of layers.toReversed()) {
    const found = await lstatInLayer(layer, ['usr', 'bin', 'sudo'])
    if (found) return found.isFile()
  }
  return false
}

/** Returns undefined if the layer does not contain the path. Returns the whiteout device of a deleted file. */
async function lstatInLayer(layer: string, path: readonly string[]): Promise<Stats | undefined> {
  let current = layer
  let found: Stats | undefined
  for (const name of path) {
    if (found && !found.isDirectory()) return undefined
    current = join(current, name)
    found = await lstat(current).catch(() => undefined)
    if (!found) return undefined
  }
  return found
}
