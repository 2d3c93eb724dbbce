import { isDeepStrictEqual } from 'node:util'
import { needsEgressProxy } from '../domain/network/network-rules.ts'
import type { NetworkRules } from '@atoll/contracts/network/rules'
import type { Slot } from '../domain/network/slot.ts'
import type { Egress } from './egress.ts'
import { redirectLines, redirectRemoval, ruleLines, ruleRemoval } from './nft-rules.ts'

/** Rules in force per slot, in the nftables table and in the egress process. */
export interface SlotRules {
  /** Returns the script that puts these rules in force. Most slots have no rules and need none. */
  script(slot: Slot, rules: NetworkRules | undefined): string[]
  /** Removes the rules of a slot with `run`, which runs a script for each part. */
  remove(slot: Slot, run: (script: readonly string[]) => Promise<void>): Promise<void>
  /** Updates the egress process before redirection starts, and after it ends. `change` runs the script. */
  withEgress(
    slot: Slot,
    rules: NetworkRules | undefined,
    change: () => Promise<void>,
  ): Promise<void>
  areInForce(slot: Slot, rules: NetworkRules | undefined): boolean
  /** Records that the script has run. */
  confirm(slot: Slot, rules: NetworkRules | undefined): void
  /** Forgets all slots and sends the rules of these ones to the egress process. */
  reset(slots: readonly Slot[], rules?: ReadonlyMap<number, NetworkRules>): Promise<void>
}

const noRules: NetworkRules = { allowOut: [], denyOut: [] }

/** Returns whether the rules restrict and redirect nothing. */
function areEmpty(rules: NetworkRules | undefined): boolean {
  if (!rules) return true
  return rules.allowOut.length + rules.denyOut.length === 0 && !needsEgressProxy(rules)
}

export function createSlotRules(table: string, egress: Pick<Egress, 'setAll' | 'set'>): SlotRules {
  /** Rules of slots that have a chain; undefined while they are unknown. */
  const inTable = new Map<number, NetworkRules | undefined>()
  /** Slots with traffic redirected to the egress process. */
  const redirected = new Set<number>()
  /** Rules in force in the egress process. */
  const inEgress = new Map<number, NetworkRules>()

  function redirectScript(slot: Slot, rules: NetworkRules | undefined): string[] {
    const isNeeded = rules !== undefined && needsEgressProxy(rules)
    const removal = redirected.has(slot.number) ? redirectRemoval(table, slot) : []
    if (isNeeded) redirected.add(slot.number)
    return isNeeded ? [...removal, ...redirectLines(table, slot, rules)] : removal
  }

  async function withEgress(
    slot: Slot,
    rules: NetworkRules | undefined,
    change: () => Promise<void>,
  ): Promise<void> {
    if (rules && needsEgressProxy(rules)) {
      // If a step below fails, the rules in force are unknown.
      inTable.set(slot.number, undefined)
      await egress.set(slot.sandboxAddress, rules)
      try {
        await change()
      } catch (error) {
        await egress.set(slot.sandboxAddress, inEgress.get(slot.number)).catch(() => {})
        throw error
      }
      inEgress.set(slot.number, rules)
      return
    }
    await change()
    redirected.delete(slot.number)
    await egress.set(slot.sandboxAddress, undefined)
    inEgress.delete(slot.number)
  }

  return {
    withEgress,

    script(slot, rules) {
      if (areEmpty(rules) && !inTable.has(slot.number)) return []
      const script = [...ruleLines(table, slot, rules), ...redirectScript(slot, rules)]
      inTable.set(slot.number, undefined) // unknown until the script has run
      return script
    },

    async remove(slot, run) {
      if (!inTable.has(slot.number)) return
      await withEgress(slot, undefined, async () => {
        if (redirected.has(slot.number)) await run(redirectRemoval(table, slot))
        await run(ruleRemoval(table, slot))
      })
      inTable.delete(slot.number)
    },

    areInForce(slot, rules) {
      const known = inTable.get(slot.number)
      if (!known) return false
      return areEmpty(rules) ? areEmpty(known) : isDeepStrictEqual(known, rules)
    },

    confirm(slot, rules) {
      if (inTable.has(slot.number)) inTable.set(slot.number, rules ?? noRules)
    },

    async reset(slots, rules) {
      inTable.clear()
      redirected.clear()
      inEgress.clear()
      const needed = slots.flatMap(({ number, sandboxAddress }) => {
        const own = rules?.get(number)
        return own && needsEgressProxy(own) ? [{ number, sandboxAddress, own }] : []
      })
      await egress.setAll(new Map(needed.map(({ sandboxAddress, own }) => [sandboxAddress, own])))
      for (const { number, own } of needed) inEgress.set(number, own)
    },
  }
}
