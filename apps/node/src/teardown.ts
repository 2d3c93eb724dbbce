import { realpath } from 'node:fs/promises'
import { keyFileOf, openKeyFile } from '@atoll/kit/encryption/key-file'
import { reclaim } from './app/lifecycle/reclaim.ts'
import type { NodeConfig } from './config.ts'
import { toInstallation } from './domain/host/installation.ts'
import { openHost } from './composition/host.ts'
import { isAlive } from './linux/processes/process.ts'
import { noKeys } from './state/private-values.ts'
import type { RecordKeys } from './state/record-file.ts'
import { findMountNamespace, removeMountNamespace } from './linux/mounts/mount-namespace.ts'

/**
 * Ends every running sandbox of this installation and leaves the host as it was before the first start. Keeps the data
 * directory, including paused sandboxes and quarantined files.
 */
export async function tearDownNode(config: NodeConfig): Promise<{ endedSandboxes: number }> {
  const dataDir = await realpath(config.ATOLL_DATA_DIR).catch(() => undefined)
  if (dataDir === undefined) return { endedSandboxes: 0 }
  const installation = toInstallation(dataDir)
  const namespace = await findMountNamespace(installation.runDir)
  if (!namespace) return { endedSandboxes: 0 }
  const host = openHost(config, installation, { namespace, keys: await openKeys(config) })
  const adopted = await reclaim(
    {
      ...host,
      isAlive,
      isCurrent: () => false,
      thaw: () => Promise.resolve(),
      thawClaimed: async () => {},
      slotNames: host.slots.list,
      removeSlot: host.slots.remove,
      onError: () => {},
    },
    host.subnet,
    installation.linkPrefix,
  )
  for (const { record, slot } of adopted.running) {
    await host.erase(record.cellId)
    await host.slots.remove(slot)
  }
  for (const { cellId } of adopted.quarantined) await host.halt(cellId)
  for (const slot of adopted.quarantinedSlots) await host.slots.remove(slot)
  await host.cgroups.removeAll()
  await host.firewall.uninstall()
  await removeMountNamespace(installation.runDir)
  return { endedSandboxes: adopted.running.length }
}

/** Without a key file, sandboxes are ended all the same. */
async function openKeys(config: NodeConfig): Promise<RecordKeys> {
  const file = keyFileOf(config.ATOLL_DATA_DIR, config.ATOLL_ENCRYPTION_KEY_FILE)
  const { keyRing, isNew } = await openKeyFile(file)
  return isNew ? noKeys : keyRing
}
