import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import type { SandboxNode } from '../../domain/node.ts'
import { canRestore } from '../../domain/nodes/can-restore.ts'
import type { Sandbox } from '../../domain/sandboxes/sandbox.ts'
import { backToPaused, isDurable } from '../../domain/sandboxes/sandbox-pause.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import type { Fleet } from '../nodes/fleet.ts'
import type { Placing } from '../nodes/placing.ts'
import { fetchContent } from './fetch-content.ts'

/**
 * Makes sure that a sandbox that is being resumed is on a node that can start it. When its own node is out of reach or
 * takes no sandboxes, another one fetches the content from the object store and becomes the owner. Returns the record. A
 * failure puts the record back to `paused`: nothing was started. `onStay` receives the reason when a draining node resumes the
 * sandbox itself. That happens only while the record names it: two nodes never start the same sandbox.
 */
export type MoveIfNeeded = (
  claimed: Sandbox,
  boot: boolean,
  onStay?: (reason: Fault) => void,
) => Promise<Sandbox>

const answerLimitMs = 5_000

export function createMoveIfNeeded(ports: {
  readonly store: SandboxStore
  readonly fleet: Fleet
  readonly placing: Placing
  readonly clock: Clock
}): MoveIfNeeded {
  const { store, fleet, placing, clock } = ports

  const move = (claimed: Sandbox, boot: boolean): Promise<Sandbox> => {
    const { id, generation, keptGeneration = 0, keptId, nodeId: homeId } = claimed
    // The template is part of the content; it is not looked for.
    const shape = { nodeTemplateId: '', ...claimed.resources }
    const content = { id, generation, keptGeneration, keptId, boot }
    const suits = createSuits(ports, claimed, boot)
    const request = { shape, exceptId: homeId, isDurable: true, suits }
    return placing.place(request, async (nodeId) => {
      // The fetched content is on the node before the record names the node: no crash leaves a record without content.
      await fetchContent(fleet.of(nodeId), content, clock)
      const moved = await store.update(id, (current) =>
        isSameClaim(claimed, current) ? { ...current, nodeId } : current,
      )
      if (moved && isSameClaim({ ...claimed, nodeId }, moved)) return moved
      throw changedMeanwhile(id)
    })
  }

  return async (claimed, boot, onStay) => {
    const condition = placing.conditionOf(claimed.nodeId)
    if (condition === 'well') return claimed
    const mayMove = isDurable(claimed)
    // A node that is only late with its heartbeats may still answer.
    if (!mayMove && (condition === 'draining' || fleet.reaches(claimed.nodeId))) {
      onStay?.(notUploaded(claimed.id))
      return claimed
    }
    try {
      if (!mayMove) throw contentOutOfReach(claimed.id)
      return await move(claimed, boot)
    } catch (error) {
      // A draining node still works, and so may one that is only late: it resumes what others cannot take over.
      const mayStay =
        mayMove &&
        !isNewerElsewhere(error) &&
        (condition === 'draining' || (await answers(fleet, claimed.nodeId)))
      // Read again, under the lock of the record: a move whose answer was lost may have been committed.
      const current = await store.update(claimed.id, (found) =>
        !mayStay && isSameClaim(claimed, found) ? backToPaused(found, clock.now()) : found,
      )
      if (mayStay && current && isSameClaim(claimed, current)) {
        onStay?.(Fault.from(error))
        return claimed
      }
      throw error
    }
  }
}

/** Returns a function that says whether another node can restore the memory of the sandbox, and has room for it. */
function createSuits(
  { fleet, placing }: { readonly fleet: Fleet; readonly placing: Placing },
  { nodeId, keptBytes = 0 }: Sandbox,
  boot: boolean,
): (otherId: string) => boolean {
  const home = fleet.reaches(nodeId) ? fleet.member(nodeId).facts() : undefined
  return (otherId) => {
    const facts = fleet.member(otherId).facts()
    const restores = boot || !facts || !home || canRestore(facts, home)
    return restores && placing.hasRoom(otherId, { diskBytes: keptBytes, memoryBytes: 0 })
  }
}

/** Asks the node: heartbeats may be late although it works. */
async function answers(fleet: Fleet, nodeId: string): Promise<boolean> {
  if (!fleet.reaches(nodeId)) return false
  const asked = fleet.member(nodeId).register(AbortSignal.timeout(answerLimitMs), 'request')
  return asked.then(
    () => true,
    () => false,
  )
}

/**
 * Runs `resume`. If the node does not have the content any more, and the object store does, the node fetches it first: the
 * node has evicted it, or its data was lost, or restored from a backup.
 */
export async function resumeOrFetch(
  node: Pick<SandboxNode, 'fetch' | 'find'>,
  {
    claimed,
    boot,
    clock,
  }: { readonly claimed: Sandbox; readonly boot: boolean; readonly clock: Clock },
  resume: () => Promise<void>,
): Promise<void> {
  try {
    await resume()
  } catch (error) {
    const content = await findStored(node, claimed, error)
    if (!content) throw error
    const { id, generation } = claimed
    await fetchContent(node, { id, generation, ...content, boot }, clock)
    await resume()
  }
}

interface StoredContent {
  readonly keptGeneration: number
  readonly keptId: string | undefined
}

/** Returns the content to fetch after a resume that failed. Undefined: a fetch cannot help. */
async function findStored(
  node: Pick<SandboxNode, 'find'>,
  claimed: Sandbox,
  error: unknown,
): Promise<StoredContent | undefined> {
  const reason = error instanceof Fault ? error.reason : undefined
  const isEvicted = reason === 'sandbox_evicted'
  if (!isEvicted && reason !== 'sandbox_not_found') return undefined
  const { keptGeneration = 0, keptId } = claimed
  if (isDurable(claimed)) return { keptGeneration, keptId }
  // The record may not say yet that the content was uploaded. Its node evicted it, so the node knows.
  if (!isEvicted) return undefined
  const found = await node.find(claimed.id, AbortSignal.timeout(answerLimitMs))
  if (found?.state !== 'paused' || !found.isDurable) return undefined
  const isNewest = found.keptGeneration !== undefined && found.keptGeneration >= keptGeneration
  if (!isNewest) return undefined
  return { keptGeneration: found.keptGeneration, keptId: found.keptId }
}

/** Whether this process still owns the start: any other change of the record ends the claim. */
function isSameClaim(claimed: Sandbox, current: Sandbox): boolean {
  return (
    current.state === 'resuming' &&
    current.holder === claimed.holder &&
    current.generation === claimed.generation &&
    current.nodeId === claimed.nodeId
  )
}

function contentOutOfReach(id: string): Fault {
  return new Fault(
    'unavailable',
    'node_unavailable',
    `Sandbox ${id} stays paused: its node does not answer, and its newest content was not uploaded before; try again when the node is back`,
  )
}

function notUploaded(id: string): Fault {
  const message = `The content of sandbox ${id} was not uploaded to the object store in time`
  return new Fault('unavailable', 'objects_unavailable', message)
}

/** Another node has started the sandbox, or has content that is not older. */
function isNewerElsewhere(error: unknown): boolean {
  return error instanceof Fault && newerElsewhere.has(error.reason)
}

const newerElsewhere = new Set(['sandbox_superseded', 'sandbox_content_conflict'])

export function changedMeanwhile(id: string): Fault {
  return new Fault(
    'conflict',
    'sandbox_superseded',
    `Sandbox ${id} was changed by another request while it was being resumed: read its state and try again`,
  )
}
