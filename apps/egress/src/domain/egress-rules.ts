/**
 * Decisions about where a sandbox may connect to.
 *
 * Threats: the sandbox chooses both the address and the name, and nothing ties one to the other. A name therefore never
 * allows the dialed address: with `byName` the egress proxy resolves the name itself, and refuses closed addresses in
 * the result too, since the owner of a name can point it at our own network.
 */
import type { EgressRules } from '@atoll/contracts/network/rules'
import { contains, toNumber, toRanges } from '@atoll/kit/address-ranges'
import type { AddressRange } from '@atoll/kit/address-ranges'
import { matchesName } from './name-pattern.ts'

export type Verdict =
  | { readonly kind: 'refuse' }
  | { readonly kind: 'byAddress' }
  | { readonly kind: 'byName'; readonly name: string }

/** Rules parsed for fast matching. */
export interface CompiledRules {
  readonly closed: readonly AddressRange[]
  readonly allowed: readonly AddressRange[]
  readonly denied: readonly AddressRange[]
  readonly allowNames: readonly string[]
}

/** `closed` lists ranges that no rule can allow. Throws a fault if an address entry is invalid. */
export function compileRules(rules: EgressRules, closed: readonly string[]): CompiledRules {
  return {
    closed: toRanges(closed),
    allowed: toRanges(rules.allowOut),
    denied: toRanges(rules.denyOut),
    allowNames: rules.allowNames,
  }
}

/** Whether a name can change the verdict. If not, the proxy need not wait for the client's first bytes. */
export function needsName(rules: CompiledRules, address: string): boolean {
  const value = openAddress(rules, address)
  if (value === undefined || rules.allowNames.length === 0) return false
  return !contains(rules.allowed, value) && contains(rules.denied, value)
}

/** Applies the first match in this order: closed, allowed address, allowed name, denied address, default allow. */
export function decide(rules: CompiledRules, address: string, name: string | undefined): Verdict {
  const value = openAddress(rules, address)
  if (value === undefined) return { kind: 'refuse' }
  if (contains(rules.allowed, value)) return { kind: 'byAddress' }
  if (name !== undefined && matchesName(name, rules.allowNames)) return { kind: 'byName', name }
  return { kind: contains(rules.denied, value) ? 'refuse' : 'byAddress' }
}

function openAddress({ closed }: CompiledRules, address: string): number | undefined {
  const value = toNumber(address)
  return value === undefined || contains(closed, value) ? undefined : value
}
