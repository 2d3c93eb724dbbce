import type { Logger } from '@atoll/kit/log'
import { createSlotPool } from '../app/pools/slot-pool.ts'
import type { SlotPool } from '../app/pools/slot-pool.ts'
import type { NodeConfig } from '../config.ts'
import type { Slot } from '../domain/network/slot.ts'
import type { Host } from './host.ts'

/** Opens the pool of network slots. `used`: slots that adopted cells use. */
export function openSlots(
  config: NodeConfig,
  host: Host,
  used: readonly Slot[],
  log: Logger,
): SlotPool {
  return createSlotPool({
    ports: {
      // Add the firewall rules before the veth pair exists.
      make: async (slot) => {
        await host.firewall.addSlot(slot)
        await host.slots.make(slot)
      },
      remove: async (slot) => {
        await host.slots.remove(slot)
        await host.firewall.removeSlot(slot)
      },
    },
    subnet: host.subnet,
    linkPrefix: host.installation.linkPrefix,
    ready: config.ATOLL_READY_SLOTS,
    inUse: used.map(({ number }) => number),
    onError: (err) =>
      log.error(
        { err, event: 'node.slots' },
        'a network slot could not be prepared or removed; the next sandbox tries again',
      ),
  })
}
