import { contains, toNumber, toRanges } from '@atoll/kit/address-ranges'
import type { AddressRange } from '@atoll/kit/address-ranges'
import { matchesName } from './name-pattern.ts'
import type { Transforms } from './transform.ts'

/**
 * Where a connection of a sandbox may go.
 *
 * Threats: the sandbox picks the address and the name, and nothing ties one to the other. A name therefore never opens
 * the address that was dialled: `byName` means that the name is resolved by us, and that what it resolves to must not be
 * closed either, since whoever owns a name can point it at our own network.
 */
export interface SandboxRules {
  /** IPv4 addresses and ranges, as in `denyOut`. */
  readonly allowOut: readonly string[]
  readonly denyOut: readonly string[]
  /** As name-pattern.ts has them. */
  readonly allowNames: readonly string[]
  readonly proxy?: ProxyRule
  readonly transforms?: Transforms
}

export interface ProxyRule {
  readonly address: string
  readonly username?: string
  readonly password?: string
}

export type Verdict =
  | { readonly kind: 'refuse' }
  | { readonly kind: 'byAddress' }
  | { readonly kind: 'byName'; readonly name: string }

/** Rules in the form that many connections are compared with. */
export interface CompiledRules {
  readonly closed: readonly AddressRange[]
  readonly allowed: readonly AddressRange[]
  readonly denied: readonly AddressRange[]
  readonly allowNames: readonly string[]
}

/** `closed` are ranges that no rule opens. A fault when an entry of a list of addresses is none. */
export function compileRules(rules: SandboxRules, closed: readonly string[]): CompiledRules {
  return {
    closed: toRanges(closed),
    allowed: toRanges(rules.allowOut),
    denied: toRanges(rules.denyOut),
    allowNames: rules.allowNames,
  }
}

/** Whether a name can change the verdict. If not, no byte has to be waited for. */
export function needsName(rules: CompiledRules, address: string): boolean {
  const value = openAddress(rules, address)
  if (value === undefined || rules.allowNames.length === 0) return false
  return !contains(rules.allowed, value) && contains(rules.denied, value)
}

/** The first that applies: closed, allowed address, allowed name, denied address, all else. */
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
