import type { Logger } from '@atoll/kit/log'
import type { NodeStore } from '../../domain/node-record.ts'
import { idOf } from './fleet.ts'
import type { Fleet } from './fleet.ts'
import type { Loads } from './loads.ts'
import type { Placing } from './placing.ts'
import { startVisits } from './visits.ts'

const intervalMs = 5_000
const timeoutMs = 5_000

/** Measures the nodes for placement. A node without others needs no measuring: every sandbox goes there. */
export function startMeasuring(deps: {
  readonly fleet: Fleet
  readonly loads: Loads
  readonly placing: Pick<Placing, 'noteStatus'>
  readonly store: Pick<NodeStore, 'find'>
  readonly log: Logger
}): { close(): Promise<void> } {
  const { fleet, loads, placing, store, log } = deps
  return fleet.forEachRegistered((member) => {
    const pass = async (signal: AbortSignal) => {
      const id = idOf(member)
      if (fleet.size() < 2) {
        // Reservations are for the choice between nodes, and only a measurement would end them.
        loads.forget(id)
        return intervalMs
      }
      const note = loads.beginMeasuring(id)
      const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
      note(await member.sandboxes.measure(limit))
      placing.noteStatus(id, (await store.find(id))?.status ?? 'ready')
      return intervalMs
    }
    return startVisits('measure nodes', pass, { fleet, log, isUrgent: true })
  })
}
