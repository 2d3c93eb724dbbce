import { Fault } from '@atoll/kit/fault'
import type { Uploaded } from '../../domain/uploaded.ts'
import type { Fleet } from '../nodes/fleet.ts'

/**
 * Returns those of the contents that the object store has. Undefined: no node can say, since none has an object store, or all that
 * have one are of a release that cannot be asked.
 */
export type AskUploaded = (wanted: Uploaded, signal: AbortSignal) => Promise<Uploaded | undefined>

/** A store that is down must not have an api ask all nodes of a large fleet. */
const maxFailures = 3

/**
 * Returns a function that asks the nodes with an object store about the uploads of a forgotten node, until one answers. Later calls
 * ask that node first.
 * Throws a fault when such nodes exist, or may exist, and none of them answers: then the object store may have any of the contents.
 */
export function createAskUploaded(
  fleet: Pick<Fleet, 'members'>,
  nodeId: string,
  random: () => number = Math.random,
): AskUploaded {
  const others = fleet.members().filter((member) => member.id() !== nodeId)
  const able = others
    .filter((member) => member.facts()?.hasObjects)
    .map((member) => ({ member, rank: random() }))
    // Random: otherwise each attempt would ask the same failing nodes.
    .toSorted((a, b) => a.rank - b.rank)
  const failures: unknown[] = []
  return async (wanted, signal) => {
    for (let next = able[0]; next; next = able[0]) {
      try {
        const found = await next.member.sandboxes.findStored(wanted, signal)
        if (found) return found
      } catch (error) {
        failures.push(error)
        if (failures.length === maxFailures || signal.aborted) break
      }
      able.shift()
    }
    if (failures.length > 0) throw notKnown(nodeId, toReason(failures.at(-1)), failures.at(-1))
    // An api that has just started knows no node yet.
    const silent = others.find((member) => member.id() !== undefined && !member.facts())
    if (silent) throw notKnown(nodeId, `node ${silent.id()} has not answered this api yet`)
    return undefined
  }
}

function toReason(error: unknown): string {
  return error instanceof Fault ? error.message : 'no node with an object store answers in time'
}

function notKnown(nodeId: string, why: string, cause?: unknown): Fault {
  const message = `Nothing was ended in this attempt: what only the object store may have of node ${nodeId} is not known (${why}). Try again when the store and a node that uses it answer; a node that will not answer can be removed first`
  return new Fault('unavailable', 'objects_unavailable', message, { cause })
}
