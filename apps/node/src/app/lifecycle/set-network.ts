import type { Cell, CellRecord } from '../../domain/sandboxes/cell.ts'
import { withAuthority } from '../../domain/network/network-rules.ts'
import type { Authority, NetworkRules } from '@atoll/contracts/network/rules'
import type { Slot } from '../../domain/network/slot.ts'
import type { RunningSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { Freezes } from './freezes.ts'

export interface NetworkPorts {
  readonly records: { update(record: CellRecord): Promise<void> }
  setRules(slot: Slot, rules: NetworkRules): Promise<void>
  createAuthority(): Authority
  /** Makes programs in the cell trust this certificate authority, in PEM, instead of an earlier one. */
  trust(cell: Cell, certificate: string): Promise<void>
}

/** Replaces the network rules of a running sandbox. Returns the sandbox with the new rules. */
export type SetNetwork = (sandbox: RunningSandbox, rules: NetworkRules) => Promise<RunningSandbox>

export function createSetNetwork(
  ports: NetworkPorts,
  freezes: Pick<Freezes, 'isStuck'>,
): SetNetwork {
  return async ({ record, slot }, rules) => {
    const { owner } = record
    const { network, ...trusted } = withAuthority(rules, owner.authority, ports.createAuthority)
    const changed = { ...record, owner: { ...owner, network, ...trusted } }
    // Install the certificate before the rules, so that no program meets one that it does not trust. Do so even for a
    // known authority: the sandbox may have been booted since.
    const authority = owner.network?.transforms ? undefined : network.transforms?.authority
    if (authority) await ports.trust({ record, slot }, authority.certificate)
    await ports.setRules(slot, network)
    const isStuck = freezes.isStuck(record.cellId)
    await ports.records.update(isStuck ? { ...changed, phase: 'copying' } : changed)
    return { record: changed, slot }
  }
}
