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
  /** Stops; failures are expected from now on. */
  giveUp(): void
  /** Resolves when no request is open, with the failures from before `giveUp`. */
  readonly ended: Promise<readonly unknown[]>
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
  let isExpected = false
  let creating = 0
  const failures: unknown[] = []

  const create = async () => {
    creating += 1
    try {
      const { metadata, client } = options
      const wanted = { templateId: 'base', timeoutSeconds: 3600, metadata }
      acknowledged.running.add((await client.createSandbox(wanted)).sandboxID)
    } finally {
      creating -= 1
    }
  }
  const kill = async (id: string) => {
    acknowledged.running.delete(id)
    acknowledged.doubtful.add(id)
    await options.client.killSandbox(id)
    acknowledged.doubtful.delete(id)
    acknowledged.killed.add(id)
  }
  const call = async () => {
    while (!isExpected) {
      const victim = chooseVictim(acknowledged, creating, options.random)
      await (victim === undefined ? create() : kill(victim))
    }
  }
  const attempt = async () => {
    await call().catch((error: unknown) => {
      if (!isExpected) failures.push(error)
    })
  }
  return {
    giveUp: () => void (isExpected = true),
    ended: Promise.all(Array.from({ length: callers }, attempt)).then(() => failures),
  }
}

/** Returns a sandbox to kill, or undefined to create another one. */
function chooseVictim(
  { running }: AcknowledgedState,
  creating: number,
  random: Random,
): string | undefined {
  const candidates = [...running]
  const isFull = running.size + creating >= maxRunning
  if (!isFull && (candidates.length === 0 || random(3) > 0)) return undefined
  return candidates[random(candidates.length)]
}
