import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import { replaceEgress, rulesOf } from '../../domain/network/network.ts'
import type { EgressUpdate } from '../../domain/network/network.ts'
import { absent, shownState } from '../../domain/sandboxes/sandbox.ts'
import type { RunningSandbox, Sandbox } from '../../domain/sandboxes/sandbox.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import type { RuleFilling } from './fill-rules.ts'
import type { Fleet } from '../nodes/fleet.ts'
import { checkChangeable } from '../sandboxes/sandboxes.ts'

/**
 * Changes the egress rules of running sandboxes. A change first claims the record for this process, then updates the
 * node, then stores the new rules. An interrupted change is rolled back by sending the stored rules to the node again.
 */
export interface NetworkChanges {
  /**
   * Returns once the rules are in force; a later resume keeps them. After a failure, the old rules are or soon will be
   * in force.
   */
  update(teamId: string, id: string, settings: EgressUpdate): Promise<void>
  /** Sends the stored rules to the node again after a secret has changed. The reconciler retries failures. */
  repeat(id: string): Promise<void>
  /** Rolls back a change whose owner process matches `isLeft`. Throws when the node fails; the caller must retry. */
  settle(id: string, isLeft: (holder: string) => boolean): Promise<void>
  /** Whether this process is changing the sandbox's network or about to. */
  isUnderway(id: string): boolean
}

interface NetworkPorts {
  readonly store: SandboxStore
  readonly fleet: Fleet
  readonly rules: RuleFilling
  readonly processId: string
  readonly log: Logger
}

const updateLimitMs = 30_000
/** Maximum wait for a change by another process, and the poll interval. */
const waitLimitMs = 30_000
const pollMs = 50

export function createNetworkChanges(ports: NetworkPorts): NetworkChanges {
  const { processId, log } = ports
  /** Last task per sandbox: the node gets changes in the order in which they are recorded. */
  const latest = new Map<string, Promise<void>>()

  async function inTurn(id: string, work: () => Promise<void>): Promise<void> {
    const before = latest.get(id) ?? Promise.resolve()
    const done = before.catch(() => {}).then(work)
    latest.set(id, done)
    try {
      await done
    } finally {
      if (latest.get(id) === done) latest.delete(id)
    }
  }

  const leave = (id: string) => (err: unknown) =>
    log.warn(
      { err, sandboxId: id },
      'a change of network rules failed and could not be undone; the reconciler does it',
    )
  const settle: NetworkChanges['settle'] = (id, isLeft) =>
    inTurn(id, () => undoChange(ports, id, isLeft))

  return {
    async update(teamId, id, settings) {
      const change = { teamId, id, settings, isBegun: false }
      try {
        await inTurn(id, () => update(ports, change))
      } catch (error) {
        // Not awaited: the node may be slow, and the reconciler would do the same.
        if (change.isBegun) void settle(id, (holder) => holder === processId).catch(leave(id))
        throw error
      }
    },
    repeat: (id) =>
      inTurn(id, async () => {
        await claim(ports, id, (found) => found)
        await undoChange(ports, id, (holder) => holder === processId)
      }),
    settle,
    isUnderway: (id) => latest.has(id),
  }
}

interface Change {
  readonly teamId: string
  readonly id: string
  readonly settings: EgressUpdate
  /** Whether the record names this process as the owner. */
  isBegun: boolean
}

async function update(ports: NetworkPorts, change: Change): Promise<void> {
  const { store, fleet, processId } = ports
  const { id, settings } = change
  const before = await begin(ports, change)
  change.isBegun = true
  const rules = await ports.rules.fill(before.teamId, rulesOf(replaceEgress(before, settings)))
  await fleet
    .of(before.nodeId)
    .updateNetwork(before, rules, AbortSignal.timeout(updateLimitMs))
    .catch(async (error: unknown) => {
      // A sandbox that was paused or killed meanwhile has no rules in force.
      const after = await store.find(id)
      if (after) checkChangeable(after)
      throw error
    })
  let isDone = true
  await store.update(id, (current) => {
    // Another process saw the lease expire and restored the stored rules on the node.
    if (current.networkHolder !== processId) throw changeUndone(id)
    const changed = replaceEgress(current, settings)
    // A resume since then applied, or is about to apply, the old rules.
    isDone = isSameStart(before, current) && current.state !== 'resuming'
    return isDone ? { ...changed, networkHolder: undefined } : changed
  })
  if (!isDone) await undoChange(ports, id, (holder) => holder === processId)
}

/** Claims the record and returns it. */
async function begin(ports: NetworkPorts, { teamId, id }: Change): Promise<RunningSandbox> {
  return claim(ports, id, (found) => {
    if (found.teamId !== teamId) throw absent(id)
    checkChangeable(found)
    return found
  })
}

/**
 * Makes this process the owner of the record once no other process is. If `check` throws, the record stays as it was.
 */
async function claim<Checked extends Sandbox>(
  { store, processId }: NetworkPorts,
  id: string,
  check: (found: Sandbox) => Checked,
): Promise<Checked> {
  const limit = AbortSignal.timeout(waitLimitMs)
  for (;;) {
    let ours: Checked | undefined
    const current = await store.update<Sandbox>(id, (found) => {
      const checked = check(found)
      const { networkHolder: holder = processId } = found
      if (holder !== processId) return found
      ours = checked
      return { ...found, networkHolder: processId }
    })
    if (ours) return ours
    if (!current) throw absent(id)
    if (limit.aborted) throw beingChanged(id)
    await sleep(pollMs, undefined, { signal: limit }).catch(() => {})
  }
}

/** Sends the stored rules to the node and releases the record. */
async function undoChange(
  { store, fleet, rules, processId }: NetworkPorts,
  id: string,
  isLeft: (holder: string) => boolean,
): Promise<void> {
  const claimed = await store.update(id, (found) =>
    found.networkHolder !== undefined && isLeft(found.networkHolder)
      ? { ...found, networkHolder: processId }
      : found,
  )
  // Skip sandboxes that are being created, paused or resumed; the reconciler retries.
  const isOurs = claimed?.networkHolder === processId
  if (!isOurs || passing.has(claimed.state)) return
  if (shownState(claimed) === 'running') {
    const filled = await rules.fill(claimed.teamId, rulesOf(claimed))
    const limit = AbortSignal.timeout(updateLimitMs)
    await fleet.of(claimed.nodeId).updateNetwork(claimed, filled, limit)
  }
  await store.update(id, (current) =>
    current.networkHolder === processId && isSameStart(claimed, current)
      ? { ...current, networkHolder: undefined }
      : current,
  )
}

/** Short-lived states. */
const passing: ReadonlySet<Sandbox['state']> = new Set(['creating', 'pausing', 'resuming'])

function isSameStart(before: Sandbox, now: Sandbox): boolean {
  return before.startedAt?.getTime() === now.startedAt?.getTime()
}

function changeUndone(id: string): Fault {
  return new Fault(
    'unavailable',
    'network_change_taken_back',
    `The network of sandbox ${id} was not changed, because the node did not apply the rules; try again`,
  )
}

function beingChanged(id: string): Fault {
  return new Fault(
    'conflict',
    'network_being_changed',
    `The network of sandbox ${id} is being changed by another request; try again when that is finished`,
  )
}
