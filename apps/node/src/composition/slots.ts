import type { Logger } from '@atoll/kit/log'
import type { Reclaimed } from '../app/lifecycle/reclaim.ts'
import { createSlotPool } from '../app/pools/slot-pool.ts'
import type { SlotPool } from '../app/pools/slot-pool.ts'
import type { NodeConfig } from '../config.ts'
import type { Runtime } from '../domain/sandboxes/runtime.ts'
import type { Host } from './host.ts'

/** Opens the pool of network slots. Those of adopted cells are in use. */
export function openSlots({
  config,
  host,
  runtime,
  adopted,
  log,
}: {
  readonly config: NodeConfig
  readonly host: Host
  readonly runtime: Pick<Runtime, 'name'>
  readonly adopted: Pick<Reclaimed, 'running' | 'ready' | 'quarantinedSlots'>
  readonly log: Logger
}): SlotPool {
  const live = [...adopted.running, ...adopted.ready].map(({ slot }) => slot)
  return createSlotPool({
    ports: {
      // Add the firewall rules before the veth pair exists.
      make: async (slot) => {
        await host.firewall.addSlot(slot)
        await host.slots.make(slot, runtime.name)
      },
      remove: async (slot) => {
        await host.slots.remove(slot)
        await host.firewall.removeSlot(slot)
      },
    },
    subnet: host.subnet,
    linkPrefix: host.installation.linkPrefix,
    ready: config.ATOLL_READY_SLOTS,
    inUse: [...live, ...adopted.quarantinedSlots].map(({ number }) => number),
    onError: (err) =>
      log.error(
        { err, event: 'node.slots' },
        'a network slot could not be prepared or removed; the next sandbox tries again',
      ),
  })
}
