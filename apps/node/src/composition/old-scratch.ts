import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Host } from './host.ts'

/** Removes the small disk that release 0.2.0 and older wrote discarded checkpoints to. */
export async function removeOldScratch({
  installation,
  namespace,
}: Pick<Host, 'installation' | 'namespace'>): Promise<void> {
  const image = join(installation.dataDir, 'scratch.img')
  if (!existsSync(image)) return
  await namespace.tryRun('umount', [join(installation.runDir, 'state', 'scratch')])
  await rm(image, { force: true })
}
