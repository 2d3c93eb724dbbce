import { Fault } from '@atoll/kit/fault'
import { toSlot } from '../domain/slot.ts'
import type { Slot, Subnet } from '../domain/slot.ts'

export interface SlotPorts {
  /** Makes the slot and puts its rules in force, in the order in which nothing is ever open. */
  make(slot: Slot): Promise<void>
  remove(slot: Slot): Promise<void>
}

/** Network slots made ahead of their use. A slot serves one sandbox and is then removed. */
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

  /** Numbers go round, so that an address rests before it serves somebody else. */
  function reserve(): Slot {
    if (used.size >= subnet.slots) {
      throw new Fault(
        'exhausted',
        'no_address',
        `All ${subnet.slots} addresses of ${subnet.cidr} are in use`,
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
    // Whoever runs our commands may have been killed in the middle of it: the second time there is another.
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
      // Its number may be somebody else's by now.
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
