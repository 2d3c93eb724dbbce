import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '@atoll/kit/clock'
import type { FleetStore, NodeHeartbeat } from '../../domain/fleet-member.ts'
import { notAMember } from './membership.ts'

/** Resolves when the heartbeat is in the store. Throws a `forbidden` fault unless the node is a member. */
export type NoteHeartbeat = (node: NodeHeartbeat) => Promise<void>

/** Short against the interval of heartbeats, and long enough to collect those of a large fleet. */
const collectMs = 100

interface Batch {
  /** Addresses by the ID of the node. */
  readonly addresses: Map<string, string>
  readonly noted: Promise<ReadonlySet<string>>
}

/** Writes the heartbeats of a moment together: one statement for each would take most of an api's time in a large fleet. */
export function createHeartbeats(ports: {
  readonly store: Pick<FleetStore, 'noteHeartbeats'>
  readonly clock: Clock
}): NoteHeartbeat {
  const { store, clock } = ports
  let collecting: Batch | undefined

  const write = async (addresses: Batch['addresses']): Promise<ReadonlySet<string>> => {
    await sleep(collectMs)
    collecting = undefined
    const nodes = [...addresses].map(([id, address]) => ({ id, address }))
    return store.noteHeartbeats(nodes, clock.now())
  }
  const beginBatch = (): Batch => {
    const addresses = new Map<string, string>()
    return { addresses, noted: write(addresses) }
  }
  return async ({ id, address }) => {
    collecting ??= beginBatch()
    const { addresses, noted } = collecting
    addresses.set(id, address)
    if (!(await noted).has(id)) throw notAMember({ role: 'node', id })
  }
}
