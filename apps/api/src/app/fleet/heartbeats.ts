import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import type { FleetStore, NodeHeartbeat } from '../../domain/fleet-member.ts'
import { forgotten, notAMember } from './membership.ts'

/** Resolves when the heartbeat is in the store. Throws a `forbidden` fault unless the node is a member. */
export type NoteHeartbeat = (node: NodeHeartbeat) => Promise<void>

/** Short against the interval of heartbeats, and long enough to collect those of a large fleet. */
const collectMs = 100

interface Batch {
  /** The last heartbeat of each node, by its ID. */
  readonly nodes: Map<string, NodeHeartbeat>
  readonly noted: Promise<ReadonlySet<string>>
}

/**
 * Writes the heartbeats of a moment together: one statement for each would take most of an api's time in a large fleet. If the
 * store refuses the statement, the heartbeat of each node is written alone.
 */
export function createHeartbeats(ports: {
  readonly store: Pick<FleetStore, 'noteHeartbeats' | 'findMember'>
  readonly clock: Clock
}): NoteHeartbeat {
  const { store, clock } = ports
  let collecting: Batch | undefined

  const write = async (nodes: Batch['nodes']): Promise<ReadonlySet<string>> => {
    await sleep(collectMs)
    collecting = undefined
    return store.noteHeartbeats([...nodes.values()], clock.now())
  }
  const beginBatch = (): Batch => {
    const nodes = new Map<string, NodeHeartbeat>()
    return { nodes, noted: write(nodes) }
  }
  return async (heartbeat) => {
    const { id } = heartbeat
    collecting ??= beginBatch()
    const { nodes, noted } = collecting
    nodes.set(id, heartbeat)
    const members = await noted.catch((error: unknown) => {
      if (Fault.from(error).kind === 'unavailable') throw error
      // A heartbeat that the store refuses must not cost those of other nodes.
      return store.noteHeartbeats([heartbeat], clock.now())
    })
    if (members.has(id)) return
    const isForgotten = (await store.findMember(id))?.forgottenAt !== undefined
    throw isForgotten ? forgotten(id) : notAMember({ role: 'node', id })
  }
}
