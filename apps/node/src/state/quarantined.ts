import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { snapshotsDir, toInstallation } from '../domain/host/installation.ts'
import type { Quarantined } from '../domain/sandboxes/quarantine.ts'
import { scanBuiltTemplates } from './built-templates.ts'
import { noKeys } from './private-values.ts'
import { createRecordStore } from './records.ts'
import { createSnapshotStore } from './snapshots.ts'
import { scanStepLayers } from './step-layers.ts'

/** Only reads, so it is safe while a server runs. Returns nothing when the folder does not exist. */
export async function findQuarantined(dataDir: string): Promise<Quarantined[]> {
  const real = await realpath(dataDir).catch(() => dataDir)
  const installation = toInstallation(real)
  const cells = await createRecordStore(installation, noKeys).list()
  const { quarantined: templates } = await scanBuiltTemplates(join(real, 'templates'))
  const { quarantined: layers } = await scanStepLayers(join(real, 'steps'))
  return [
    ...cells.flatMap((entry) => entry.quarantined ?? []),
    ...(await createSnapshotStore(snapshotsDir(installation), noKeys).listQuarantined()),
    ...templates,
    ...layers,
  ]
}
