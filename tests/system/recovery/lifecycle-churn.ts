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
import type {
  KnownSandbox,
  LifecycleAccount,
  SandboxRequest,
  RequestContext,
} from './lifecycle-requests.ts'

export interface LifecycleChurn {
  /** Stops new requests. */
  stop(): void
  /** Stops new requests and ignores missing responses. */
  abort(): void
  /** Resolves when no request is open, with the failed requests. */
  readonly failures: Promise<readonly Failure[]>
}

export interface Failure {
  readonly request: string
  readonly sandboxId: string
  readonly answer: string
}

/** Concurrent callers, each with one request at a time on a separate sandbox. */
export const callers = 3
export const minSandboxes = 3
const maxSandboxes = 6
const maxSnapshots = 3

export function startLifecycleChurn(context: RequestContext): LifecycleChurn {
  const { acknowledged, random } = context
  const attempts = createAttempts()
  const busyIds = new Set<string>()
  const capacity = createCapacity(acknowledged)
  let isStopped = false

  const idleSandboxes = () =>
    [...acknowledged.sandboxes.values()].filter(({ sandbox }) => !busyIds.has(sandbox.sandboxID))

  /** Returns false if no sandbox is idle. */
  async function act(): Promise<boolean> {
    if (random(6) === 0 && (await useSnapshot())) return true
    const entry = pick(idleSandboxes(), random)
    if (!entry) return false
    const { sandboxID } = entry.sandbox
    const request = chooseRequest(entry)
    busyIds.add(sandboxID)
    const isDone = await attempts.run(request.name, sandboxID, () =>
      request === fork ? capacity.reserve(() => fork(context, entry)) : request(context, entry),
    )
    // Keep a sandbox whose request failed as it is, for inspection.
    if (isDone) busyIds.delete(sandboxID)
    return true
  }

  /** Creates a sandbox from a snapshot, or deletes the snapshot. Returns false if there is no snapshot. */
  async function useSnapshot(): Promise<boolean> {
    const [id, source] = pick([...acknowledged.snapshots], random) ?? []
    if (id === undefined || !source) return false
    if (!source.isUsed && random(3) === 0) {
      await attempts.run('deleteSnapshot', id, () => deleteSnapshot(context, id))
    } else if (capacity.hasRoom()) {
      await attempts.run('create', id, () =>
        capacity.reserve(() => createFrom(context, id, source)),
      )
    }
    return true
  }

  function chooseRequest({ state }: KnownSandbox): SandboxRequest {
    if (idleSandboxes().length > minSandboxes && random(6) === 0) return kill
    if (state === 'paused') return resume
    if (capacity.hasRoom() && random(4) === 0) return fork
    return acknowledged.snapshots.size < maxSnapshots && random(4) === 0 ? snapshot : pause
  }

  const call = async () => {
    while (!isStopped && (await act()));
  }
  return {
    stop: () => void (isStopped = true),
    abort() {
      isStopped = true
      attempts.ignoreMissing()
    },
    failures: Promise.all(Array.from({ length: callers }, call)).then(() => attempts.failures),
  }
}

/** Keeps the number of sandboxes below the limit, also while requests create some. */
function createCapacity({ sandboxes }: LifecycleAccount) {
  /** Upper bound of the sandboxes that requests under way create. */
  let pendingCreates = 0
  return {
    hasRoom: () => sandboxes.size + pendingCreates < maxSandboxes,
    async reserve(request: () => Promise<Reply>): Promise<Reply> {
      pendingCreates += maxCopies
      return request().finally(() => (pendingCreates -= maxCopies))
    },
  }
}

function pick<T>(items: readonly T[], random: Random): T | undefined {
  return items[random(Math.max(items.length, 1))]
}

/** Sends requests and collects the failures. */
function createAttempts() {
  const failures: Failure[] = []
  let ignoresMissing = false
  return {
    failures,
    /** Stops counting a request without a response as failed. */
    ignoreMissing: () => void (ignoresMissing = true),
    /** Returns whether the request succeeded. */
    async run(request: string, sandboxId: string, send: () => Promise<Reply>): Promise<boolean> {
      try {
        const { status, text } = await send()
        if (status < 300) return true
        failures.push({ request, sandboxId, answer: `${status} ${text}` })
      } catch (error) {
        if (!ignoresMissing) failures.push({ request, sandboxId, answer: String(error) })
      }
      return false
    },
  }
}
