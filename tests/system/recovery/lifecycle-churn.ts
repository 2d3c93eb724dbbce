/** Pauses, resumes, copies and kills sandboxes concurrently and records the responses. */
import type { CloudByHand, HandSandbox } from '../cloud-by-hand.ts'
import { readCounter } from '../counter.ts'
import type { Random } from '../mutations.ts'
import type { Reply } from '../wire.ts'

export interface Known {
  readonly sandbox: HandSandbox
  /** Counter value when it was last read, or when the sandbox was copied. */
  count: number
  /** State by the last response; `unclear` after a request without a response. */
  state: 'running' | 'paused' | 'unclear'
  /** True after a kill request without a response. */
  mayBeGone: boolean
}

export interface KnownSnapshot {
  /** Lower bound of the counter in the snapshot. */
  readonly count: number
  /** True once a sandbox was created from the snapshot; it then cannot be deleted while that sandbox exists. */
  isUsed: boolean
}

export interface LifecycleAccount {
  readonly sandboxes: Map<string, Known>
  readonly killed: Set<string>
  readonly snapshots: Map<string, KnownSnapshot>
  readonly deletedSnapshots: Set<string>
}

export interface LifecycleChurn {
  /** Stops new requests. */
  stop(): void
  /** Stops new requests and ignores missing responses. */
  giveUp(): void
  /** Resolves when no request is open, with the failed ones. */
  readonly ended: Promise<readonly Failure[]>
}

export interface Failure {
  readonly what: string
  readonly sandboxId: string
  readonly answer: string
}

/** Concurrent callers, each with one request at a time on a separate sandbox. */
export const callers = 3
export const fewest = 3
const most = 6
const mostSnapshots = 3

export function startLifecycleChurn(
  account: LifecycleAccount,
  { cloud, random }: { readonly cloud: CloudByHand; readonly random: Random },
): LifecycleChurn {
  const { sandboxes, snapshots } = account
  const { url } = cloud.installation
  const busy = new Set<string>()
  const failures: Failure[] = []
  let making = 0
  let isStopped = false
  let isGivenUp = false

  const post = (path: string, body: object) => cloud.platform('POST', path, body)
  const isRoom = () => sandboxes.size + making < most

  async function pause(one: Known, path: string): Promise<Reply> {
    one.count = await readCounter(url, one.sandbox)
    one.state = 'unclear'
    const reply = await post(`${path}/pause`, {})
    one.state = reply.status === 204 ? 'paused' : 'running'
    return reply
  }

  async function wake(one: Known, path: string): Promise<Reply> {
    one.state = 'unclear'
    const reply = await (random(2) === 0
      ? post(`${path}/connect`, { timeout: 3600 })
      : post(`${path}/resume`, { timeout: 3600 }))
    one.state = reply.status === 201 ? 'running' : 'paused'
    return reply
  }

  async function kill(one: Known, path: string): Promise<Reply> {
    one.mayBeGone = true
    const reply = await cloud.platform('DELETE', path)
    if (reply.status !== 204) return reply
    account.killed.add(one.sandbox.sandboxID)
    sandboxes.delete(one.sandbox.sandboxID)
    return reply
  }

  async function snapshot(one: Known, path: string): Promise<Reply> {
    one.count = await readCounter(url, one.sandbox)
    const reply = await post(`${path}/snapshots`, {})
    if (reply.status === 201) {
      snapshots.set(Object(reply.json).snapshotID, { count: one.count, isUsed: false })
    }
    return reply
  }

  async function fork(one: Known, path: string): Promise<Reply> {
    one.count = await readCounter(url, one.sandbox)
    const reply = await post(`${path}/fork`, { timeout: 3600, count: 1 + random(2) })
    if (reply.status !== 201) return reply
    const made: { sandbox?: HandSandbox; error?: object }[] = Object(reply.json)
    for (const { sandbox } of made) if (sandbox) add(sandbox, one.count)
    return made.every(({ sandbox }) => sandbox) ? reply : { ...reply, status: 500 }
  }

  async function create(snapshotId: string, source: KnownSnapshot): Promise<Reply> {
    source.isUsed = true
    const reply = await post('/v2/sandboxes', { templateID: snapshotId, timeout: 3600 })
    if (reply.status === 201) add(Object(reply.json), source.count)
    return reply
  }

  async function deleteSnapshot(id: string): Promise<Reply> {
    snapshots.delete(id)
    const reply = await cloud.platform('DELETE', `/templates/${encodeURIComponent(id)}`)
    if (reply.status === 204) account.deletedSnapshots.add(id)
    return reply
  }

  function add(sandbox: HandSandbox, count: number): void {
    sandboxes.set(sandbox.sandboxID, { sandbox, count, state: 'running', mayBeGone: false })
  }

  const workOn = (one: Known) => {
    const { length: idle } = [...sandboxes.keys()].filter((id) => !busy.has(id))
    if (idle > fewest && random(6) === 0) return kill
    if (one.state === 'paused') return wake
    if (isRoom() && random(4) === 0) return fork
    return snapshots.size < mostSnapshots && random(4) === 0 ? snapshot : pause
  }

  /** Returns false when there is nothing left to do. */
  async function act(): Promise<boolean> {
    const kept = [...snapshots]
    const [id, chosen] = kept[random(Math.max(kept.length, 1))] ?? []
    if (id !== undefined && chosen && random(6) === 0) {
      const isDeleted = !chosen.isUsed && random(3) === 0
      if (isDeleted) await attempt('deleteSnapshot', id, () => deleteSnapshot(id))
      else if (isRoom()) await attempt('create', id, () => aside(create(id, chosen)))
      return true
    }
    const idle = [...sandboxes.values()].filter(({ sandbox }) => !busy.has(sandbox.sandboxID))
    const one = idle[random(Math.max(idle.length, 1))]
    if (!one) return false
    const { sandboxID } = one.sandbox
    const work = workOn(one)
    busy.add(sandboxID)
    const begun = () => work(one, `/sandboxes/${sandboxID}`)
    const isDone = await attempt(work.name, sandboxID, () =>
      work === fork ? aside(begun()) : begun(),
    )
    // Keep a sandbox whose request failed as it is, for inspection.
    if (isDone) busy.delete(sandboxID)
    return true
  }

  async function aside(work: Promise<Reply>): Promise<Reply> {
    making += 2
    return work.finally(() => (making -= 2))
  }

  async function attempt(what: string, id: string, work: () => Promise<Reply>): Promise<boolean> {
    const fail = (answer: string) => failures.push({ what, sandboxId: id, answer })
    try {
      const { status, text } = await work()
      if (status < 300) return true
      fail(`${status} ${text}`)
    } catch (error) {
      if (!isGivenUp) fail(String(error))
    }
    return false
  }

  const call = async () => {
    while (!isStopped && (await act()));
  }
  return {
    stop: () => void (isStopped = true),
    giveUp: () => void (isStopped = isGivenUp = true),
    ended: Promise.all(Array.from({ length: callers }, call)).then(() => failures),
  }
}
