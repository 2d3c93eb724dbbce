/** Pauses, resumes, copies and kills sandboxes concurrently and records the responses. */
import type { Random } from '../mutations.ts'
import type { Reply } from '../wire.ts'
import {
  createFrom,
  deleteSnapshot,
  fork,
  kill,
  maxCopies,
  pause,
  resume,
  snapshot,
} from './lifecycle-requests.ts'
import type { Known, LifecycleAccount, SandboxRequest, Scene } from './lifecycle-requests.ts'

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
const maxSnapshots = 3

export function startLifecycleChurn(scene: Scene): LifecycleChurn {
  const { acknowledged, random } = scene
  const attempts = createAttempts()
  const busy = new Set<string>()
  const room = createRoom(acknowledged)
  let isStopped = false

  const idleSandboxes = () =>
    [...acknowledged.sandboxes.values()].filter(({ sandbox }) => !busy.has(sandbox.sandboxID))

  /** Returns false when there is nothing left to do. */
  async function act(): Promise<boolean> {
    if (random(6) === 0 && (await useSnapshot())) return true
    const known = pick(idleSandboxes(), random)
    if (!known) return false
    const { sandboxID } = known.sandbox
    const request = chooseRequest(known)
    busy.add(sandboxID)
    const isDone = await attempts.run(request.name, sandboxID, () =>
      request === fork ? room.reserve(() => fork(scene, known)) : request(scene, known),
    )
    // Keep a sandbox whose request failed as it is, for inspection.
    if (isDone) busy.delete(sandboxID)
    return true
  }

  /** Creates a sandbox from a snapshot, or deletes the snapshot. Returns false if there is no snapshot. */
  async function useSnapshot(): Promise<boolean> {
    const [id, source] = pick([...acknowledged.snapshots], random) ?? []
    if (id === undefined || !source) return false
    if (!source.isUsed && random(3) === 0) {
      await attempts.run('deleteSnapshot', id, () => deleteSnapshot(scene, id))
    } else if (room.isLeft()) {
      await attempts.run('create', id, () => room.reserve(() => createFrom(scene, id, source)))
    }
    return true
  }

  function chooseRequest({ state }: Known): SandboxRequest {
    if (idleSandboxes().length > fewest && random(6) === 0) return kill
    if (state === 'paused') return resume
    if (room.isLeft() && random(4) === 0) return fork
    return acknowledged.snapshots.size < maxSnapshots && random(4) === 0 ? snapshot : pause
  }

  const call = async () => {
    while (!isStopped && (await act()));
  }
  return {
    stop: () => void (isStopped = true),
    giveUp() {
      isStopped = true
      attempts.ignoreMissing()
    },
    ended: Promise.all(Array.from({ length: callers }, call)).then(() => attempts.failures),
  }
}

/** Keeps the number of sandboxes below the limit, also while requests create some. */
function createRoom({ sandboxes }: LifecycleAccount) {
  /** Upper bound of the sandboxes that requests under way create. */
  let creating = 0
  return {
    isLeft: () => sandboxes.size + creating < most,
    async reserve(request: () => Promise<Reply>): Promise<Reply> {
      creating += maxCopies
      return request().finally(() => (creating -= maxCopies))
    },
  }
}

function pick<T>(items: readonly T[], random: Random): T | undefined {
  return items[random(Math.max(items.length, 1))]
}

/** Sends requests and collects the failed ones. */
function createAttempts() {
  const failures: Failure[] = []
  let ignoresMissing = false
  return {
    failures,
    /** Stops counting a request without a response as failed. */
    ignoreMissing: () => void (ignoresMissing = true),
    /** Returns whether the request succeeded. */
    async run(what: string, sandboxId: string, send: () => Promise<Reply>): Promise<boolean> {
      try {
        const { status, text } = await send()
        if (status < 300) return true
        failures.push({ what, sandboxId, answer: `${status} ${text}` })
      } catch (error) {
        if (!ignoresMissing) failures.push({ what, sandboxId, answer: String(error) })
      }
      return false
    },
  }
}
