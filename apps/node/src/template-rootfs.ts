import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Rootfs } from './app/cells.ts'
import type { CellRecord } from './domain/cell.ts'
import type { Runtime } from './domain/sandbox.ts'
import type { MountNamespace } from './linux/mount-namespace.ts'
import type { RootfsStore } from './linux/rootfs.ts'
import { createShiftedLayers } from './linux/shifted-layers.ts'
import { shiftedIds } from './oci/runc.ts'

/** Mounts cells of the built-in template, which is one layer; as yet there are no others. */
export function createTemplateRootfs(parts: {
  readonly namespace: MountNamespace
  readonly rootfs: RootfsStore
  readonly runtime: Runtime
  readonly layersDir: string
  readonly shiftedDir: string
  readonly nameservers: readonly string[]
}): (cell: CellRecord, image: string) => Promise<Rootfs | undefined> {
  const { namespace, runtime, shiftedDir: dir } = parts
  const shifted = createShiftedLayers({ namespace, dir, ...shiftedIds })
  return async ({ cellId, templateId, layer }, image) => {
    if (templateId !== 'base') return undefined
    const layerDir = join(parts.layersDir, layer)
    const path = await parts.rootfs.mount({
      cellId,
      image,
      layers: [runtime.idShift === 0 ? layerDir : await shifted.ensure(layerDir)],
      nameservers: parts.nameservers,
      idShift: runtime.idShift,
    })
    return { path, hasSudo: await exists(join(layerDir, 'usr/bin/sudo')) }
  }
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
