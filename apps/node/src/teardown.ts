import { realpath } from 'node:fs/promises'
import type { NodeConfig } from './config.ts'
import { toInstance } from './domain/instance.ts'
import { toSlot } from './domain/slot.ts'
import { openHost } from './host.ts'
import { findMountNamespace, removeMountNamespace } from './linux/mount-namespace.ts'

/** Ends every sandbox of this installation and leaves the host as it was before the first start; data stays. */
export async function tearDownNode(config: NodeConfig): Promise<{ endedSandboxes: number }> {
  const dataDir = await realpath(config.ATOLL_DATA_DIR).catch(() => undefined)
  if (dataDir === undefined) return { endedSandboxes: 0 }
  const instance = toInstance(dataDir)
  const namespace = await findMountNamespace(instance.runDir)
  if (!namespace) return { endedSandboxes: 0 }
  const host = openHost(config, instance, namespace)
  await host.killStrays(new Set())
  const records = await host.records.list()
  const found = new Set([...records.map((entry) => entry.sandboxId), ...(await host.traces())])
  for (const sandboxId of found) await host.erase(sandboxId)
  for (const name of await host.slots.list()) {
    const number = Number(name.slice(instance.linkPrefix.length))
    await host.slots.remove(toSlot(host.subnet, instance.linkPrefix, number))
  }
  await host.cgroups.removeAll()
  await host.firewall.uninstall()
  await removeMountNamespace(instance.runDir)
  return { endedSandboxes: found.size }
}
