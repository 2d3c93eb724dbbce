import { Fault } from '@atoll/kit/fault'
import { toSlot } from '../../domain/network/slot.ts'
import type { Slot, Subnet } from '../../domain/network/slot.ts'

export interface SlotPorts {
  /** Makes the slot and applies its rules, in an order that never leaves the network open. */
  make(slot: Slot): Promise<void>
  remove(slot: Slot): Promise<void>
}

/** Pool of prepared network slots. A slot serves one sandbox and is then removed. */
export interface SlotPool {
  take(): Promise<Slot>
  giveBack(slot: Slot): Promise<void>
  slot(number: number): Slot
  close(): Promise<void>
}

export function createSlotPool(parts: {
  readonly ports: SlotPorts
  readonly subnet: Subnet
  readonly linkPrefix: string
  readonly ready: number
  readonly inUse: readonly number[]
  readonly onError: (error: unknown) => void
}): SlotPool {
  const { ports, subnet } = parts
  const used = new Set(parts.inUse)
  const ready: Slot[] = []
  const returned = new WeakSet<Slot>()
  let next = parts.inUse.length === 0 ? 0 : Math.max(...parts.inUse) + 1
  let filling: Promise<void> | undefined
  let closed = false

  /** Slot numbers are used in rotation, so that an address stays unused for a while before another sandbox gets it. */
  function reserve(): Slot {
    if (used.size >= subnet.slots) {
      throw new Fault(
        'exhausted',
        'no_address',
        `All ${subnet.slots} sandbox addresses of ${subnet.cidr} are in use: kill or pause a sandbox, or set ATOLL_SUBNET to a larger network`,
      )
    }
    while (used.has(next % subnet.slots)) next += 1
    const number = next % subnet.slots
    next = number + 1
    used.add(number)
    return toSlot(subnet, parts.linkPrefix, number)
  }

  async function make(): Promise<Slot> {
    const slot = reserve()
    try {
      await ports.make(slot)
      return slot
    } catch (error) {
      await remove(slot).catch(parts.onError)
      throw error
    }
  }

  async function remove(slot: Slot): Promise<void> {
    // Retry once: the process that runs our commands may have been killed half way, and is replaced.
    await ports.remove(slot).catch(() => ports.remove(slot))
    used.delete(slot.number)
  }

  function refill(): void {
    filling ??= fill()
      .catch(parts.onError)
      .finally(() => (filling = undefined))
  }

  async function fill(): Promise<void> {
    while (!closed && ready.length < parts.ready) ready.push(await make())
  }

  refill()
  return {
    async take() {
      const slot = ready.shift() ?? (await make())
      refill()
      return slot
    },
    async giveBack(slot) {
      // The number may already belong to another slot.
      if (returned.has(slot)) return
      returned.add(slot)
      await remove(slot)
    },
    slot: (number) => toSlot(subnet, parts.linkPrefix, number),
    async close() {
      closed = true
      await filling
      await Promise.all(ready.splice(0).map(remove))
    },
  }
}
