import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import { replaceEgress, rulesOf } from '../domain/network.ts'
import type { EgressWish } from '../domain/network.ts'
import type { SandboxNode } from '../domain/node.ts'
import { absent, shownState } from '../domain/sandbox.ts'
import type { RunningSandbox, Sandbox } from '../domain/sandbox.ts'
import type { SandboxStore } from '../domain/sandbox-store.ts'
import type { RuleFilling } from './fill-rules.ts'
import { checkChangeable } from './sandboxes.ts'

/**
 * Changes of what may leave a running sandbox. The record names the process that is at one, then the node is asked, then
 * the record says what is in force. So one that is not brought to its end can be taken back: the record is right, and the
 * node is told again what it says.
 */
export interface NetworkChanges {
  /** In force when it returns, and kept for its next resume. After a failure everything is, or soon will be, as before. */
  update(teamId: string, id: string, wish: EgressWish): Promise<void>
  /** Tells the node again what the record says, since what that names is another. Done later where it cannot be now. */
  repeat(id: string): Promise<void>
  /** Takes back what was left half-way by a process of which `isLeft` holds. Fails when the node does: to be repeated. */
  settle(id: string, isLeft: (holder: string) => boolean): Promise<void>
  /** Whether this process is at one, or about to be. */
  isUnderway(id: string): boolean
}

interface NetworkPorts {
  readonly store: SandboxStore
  readonly node: SandboxNode
  readonly rules: RuleFilling
  readonly processId: string
  readonly log: Logger
}

const updateLimitMs = 30_000
/** How long others may be at one before a caller is sent away, and how often that is looked at. */
const waitLimitMs = 30_000
const pollMs = 50

export function createNetworkChanges(ports: NetworkPorts): NetworkChanges {
  const { processId, log } = ports
  /** The last work on each sandbox: the node hears of changes in the order in which they are written down. */
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
    log.warn({ err, sandboxId: id }, 'a change of a network is taken back later')
  const settle: NetworkChanges['settle'] = (id, isLeft) =>
    inTurn(id, () => takeBack(ports, id, isLeft))

  return {
    async update(teamId, id, wish) {
      const change = { teamId, id, wish, isBegun: false }
      try {
        await inTurn(id, () => update(ports, change))
      } catch (error) {
        // Nobody waits for it: the node may be slow, and the reconciler would do the same.
        if (change.isBegun) void settle(id, (holder) => holder === processId).catch(leave(id))
        throw error
      }
    },
    repeat: (id) =>
      inTurn(id, async () => {
        await claim(ports, id, (found) => found)
        await takeBack(ports, id, (holder) => holder === processId)
      }),
    settle,
    isUnderway: (id) => latest.has(id),
  }
}

interface Change {
  readonly teamId: string
  readonly id: string
  readonly wish: EgressWish
  /** Whether the record names this process. */
  isBegun: boolean
}

async function update(ports: NetworkPorts, change: Change): Promise<void> {
  const { store, node, processId } = ports
  const { id, wish } = change
  const before = await begin(ports, change)
  change.isBegun = true
  const rules = await ports.rules.fill(before.teamId, rulesOf(replaceEgress(before, wish)))
  await node
    .updateNetwork(id, rules, AbortSignal.timeout(updateLimitMs))
    .catch(async (error: unknown) => {
      // What is paused or killed meanwhile has no rules in force.
      const after = await store.find(id)
      if (after) checkChangeable(after)
      throw error
    })
  let isDone = true
  await store.update(id, (current) => {
    // Others took this process for dead, and made the node enforce what the record says.
    if (current.networkHolder !== processId) throw takenBack(id)
    const changed = replaceEgress(current, wish)
    // A resume since then has brought back, or is about to, what the record said before.
    isDone = isSameStart(before, current) && current.state !== 'resuming'
    return isDone ? { ...changed, networkHolder: undefined } : changed
  })
  if (!isDone) await takeBack(ports, id, (holder) => holder === processId)
}

/** Gives the record once this process is at it. */
async function begin(ports: NetworkPorts, { teamId, id }: Change): Promise<RunningSandbox> {
  return claim(ports, id, (found) => {
    if (found.teamId !== teamId) throw absent(id)
    checkChangeable(found)
    return found
  })
}

/** Names this process in the record once no other is in it. What `check` throws leaves it as it was. */
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

/** The node enforces what the record says again, and nobody is at it any more. */
async function takeBack(
  { store, node, rules, processId }: NetworkPorts,
  id: string,
  isLeft: (holder: string) => boolean,
): Promise<void> {
  const claimed = await store.update(id, (found) =>
    found.networkHolder !== undefined && isLeft(found.networkHolder)
      ? { ...found, networkHolder: processId }
      : found,
  )
  // What is being paused or resumed is something else in a moment: then there is another time for it.
  const isOurs = claimed?.networkHolder === processId
  if (!isOurs || passing.has(claimed.state)) return
  if (shownState(claimed) === 'running') {
    const filled = await rules.fill(claimed.teamId, rulesOf(claimed))
    await node.updateNetwork(id, filled, AbortSignal.timeout(updateLimitMs))
  }
  await store.update(id, (current) =>
    current.networkHolder === processId && isSameStart(claimed, current)
      ? { ...current, networkHolder: undefined }
      : current,
  )
}

/** What it is now it will not be for long. */
const passing: ReadonlySet<Sandbox['state']> = new Set(['creating', 'pausing', 'resuming'])

function isSameStart(before: Sandbox, now: Sandbox): boolean {
  return before.startedAt?.getTime() === now.startedAt?.getTime()
}

function takenBack(id: string): Fault {
  return new Fault(
    'unavailable',
    'network_change_taken_back',
    `The network of sandbox ${id} was not changed; try again`,
  )
}

function beingChanged(id: string): Fault {
  return new Fault(
    'conflict',
    'network_being_changed',
    `The network of sandbox ${id} is being changed at this moment; try again when that is done`,
  )
}
