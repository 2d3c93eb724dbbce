import { toSlot } from '../domain/slot.ts'
import type { Slot, Subnet } from '../domain/slot.ts'
import type { ProcessIdentity, RunningSandbox, SandboxRecord } from '../domain/sandbox.ts'

export interface ReclaimPorts {
  readonly records: {
    list(): Promise<{ sandboxId: string; record: SandboxRecord | undefined }[]>
  }
  isAlive(process: ProcessIdentity): boolean
  /** Ids under which anything at all is left: state of runtimes, control groups, mounts, processes. */
  traces(): Promise<string[]>
  killStrays(keep: ReadonlySet<string>): Promise<void>
  erase(sandboxId: string): Promise<void>
  /** Names of network slots that exist. */
  slotNames(): Promise<string[]>
  removeSlot(slot: Slot): Promise<void>
}

/**
 * What a dead predecessor left: sandboxes that still run are adopted, everything else is removed. Half-made ones are
 * not finished: whoever asked for them has lost the connection too.
 */
export async function reclaim(
  ports: ReclaimPorts,
  subnet: Subnet,
  linkPrefix: string,
): Promise<RunningSandbox[]> {
  const entries = await ports.records.list()
  const adopted = entries.flatMap(({ record }) => {
    if (record?.phase !== 'running' || !record.process || !ports.isAlive(record.process)) return []
    return [{ record, slot: toSlot(subnet, linkPrefix, record.slotNumber) }]
  })

  const kept = new Set(adopted.map(({ record }) => record.sandboxId))
  await ports.killStrays(kept)
  const found = new Set([...entries.map((entry) => entry.sandboxId), ...(await ports.traces())])
  for (const sandboxId of found) {
    if (!kept.has(sandboxId)) await ports.erase(sandboxId)
  }

  const keptSlots = new Set(adopted.map(({ slot }) => slot.link))
  for (const name of await ports.slotNames()) {
    if (keptSlots.has(name)) continue
    await ports.removeSlot(toSlot(subnet, linkPrefix, Number(name.slice(linkPrefix.length))))
  }
  return adopted
}
