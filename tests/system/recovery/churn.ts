/** Creates and kills sandboxes concurrently and records the responses. */
import type { PlatformClient } from '@atoll/client/platform'
import type { Random } from '../mutations.ts'

export interface AcknowledgedState {
  /** Sandboxes whose create returned 201 and whose kill was not requested. */
  readonly running: Set<string>
  /** Sandboxes whose kill was requested without a response. */
  readonly doubtful: Set<string>
  /** Sandboxes whose kill returned 204. */
  readonly killed: Set<string>
}

export interface Churn {
  /** Stops, and ignores failures from now on. */
  abort(): void
  /** Resolves when no request is open, with the failures before `abort`. */
  readonly failures: Promise<readonly unknown[]>
}

export interface ChurnOptions {
  readonly client: PlatformClient
  readonly random: Random
  readonly metadata: Record<string, string>
}

/** Concurrent callers, each with one request at a time. */
const callers = 4
/** Limit on running sandboxes: above it, callers only kill. */
const maxRunning = 6

export function startChurn(acknowledged: AcknowledgedState, options: ChurnOptions): Churn {
  let isAborted = false
  let pendingCreates = 0
  const failures: unknown[] = []

  const create = async () => {
    pendingCreates += 1
    try {
      const { metadata, client } = options
      const request = { templateId: 'base', timeoutSeconds: 3600, metadata }
      acknowledged.running.add((await client.createSandbox(request)).sandboxID)
    } finally {
      pendingCreates -= 1
    }
  }
  const kill = async (id: string) => {
    acknowledged.running.delete(id)
    acknowledged.doubtful.add(id)
    await options.client.killSandbox(id)
    acknowledged.doubtful.delete(id)
    acknowledged.killed.add(id)
  }
  const runCaller = async () => {
    while (!isAborted) {
      const victim = chooseVictim(acknowledged, pendingCreates, options.random)
      await (victim === undefined ? create() : kill(victim))
    }
  }
  const runAndRecord = async () => {
    await runCaller().catch((error: unknown) => {
      if (!isAborted) failures.push(error)
    })
  }
  return {
    abort: () => void (isAborted = true),
    failures: Promise.all(Array.from({ length: callers }, runAndRecord)).then(() => failures),
  }
}

/** Returns a sandbox to kill, or undefined to create another one. */
function chooseVictim(
  { running }: AcknowledgedState,
  pendingCreates: number,
  random: Random,
): string | undefined {
  const candidates = [...running]
  const isFull = running.size + pendingCreates >= maxRunning
  if (!isFull && (candidates.length === 0 || random(3) > 0)) return undefined
  return candidates[random(candidates.length)]
}
