import { join } from 'node:path'
import { createChanges } from '../app/changes/changes.ts'
import type { Changes } from '../app/changes/changes.ts'
import type { InspectedCell, Sandboxes } from '../app/lifecycle/sandboxes.ts'
import { cellDir } from '../domain/host/installation.ts'
import { createDiskInspector } from '../linux/changes/inspect-disk.ts'
import type { Host } from './host.ts'
import type { TemplateFiles } from './template-files.ts'

export function openChanges(
  { installation, namespace }: Host,
  files: Pick<TemplateFiles, 'chain'>,
  sandboxes: Pick<Sandboxes, 'inspect'>,
): Changes {
  const mountsDir = join(installation.runDir, 'mounts')
  const inspector = createDiskInspector({ namespace, mountsDir })
  function diskOf({ record, isMounted }: InspectedCell) {
    const { cellId, layer, disk } = record
    const folder = cellDir(installation, cellId)
    const image = isMounted ? {} : { image: join(folder, disk) }
    return { cellId, cellDir: folder, layers: files.chain(layer), ...image }
  }
  return createChanges({
    sandboxes,
    ports: {
      list: (cell, query, signal) => inspector.list(diskOf(cell), query, signal),
      read: (cell, query, signal) => inspector.read(diskOf(cell), query, signal),
    },
  })
}
