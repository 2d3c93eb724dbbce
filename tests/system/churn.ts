/** A stream of creates and kills, and an account of what its callers were told. */
import type { PlatformClient } from '@atoll/client/platform'
import type { Random } from './mutations.ts'

export interface Account {
  /** Those that were answered with 201, and nobody has asked to kill since. */
  readonly running: Set<string>
  /** Asked to be killed, without an answer. */
  readonly doubtful: Set<string>
  /** Those whose kill was answered with 204. */
  readonly killed: Set<string>
}

export interface Churn {
  /** From now on failures are expected. */
  giveUp(): void
  /** Resolves when no request is under way; with the failures that came before they were expected. */
  readonly ended: Promise<readonly unknown[]>
}

export interface ChurnOptions {
  readonly client: PlatformClient
  readonly random: Random
  readonly metadata: Record<string, string>
}

/** So many callers at once, each with one request after the other. */
const callers = 4
/** From here on sandboxes are killed only. */
const mostRunning = 6

export function startChurn(account: Account, options: ChurnOptions): Churn {
  let isExpected = false
  let creating = 0
  const failures: unknown[] = []

  const create = async () => {
    creating += 1
    try {
      const { metadata, client } = options
      const wanted = { templateId: 'base', timeoutSeconds: 3600, metadata }
      account.running.add((await client.createSandbox(wanted)).sandboxID)
    } finally {
      creating -= 1
    }
  }
  const kill = async (id: string) => {
    account.running.delete(id)
    account.doubtful.add(id)
    await options.client.killSandbox(id)
    account.doubtful.delete(id)
    account.killed.add(id)
  }
  const call = async () => {
    while (!isExpected) {
      const victim = chooseVictim(account, creating, options.random)
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

/** Undefined: it is time for another one. */
function chooseVictim({ running }: Account, creating: number, random: Random): string | undefined {
  const candidates = [...running]
  const isFull = running.size + creating >= mostRunning
  if (!isFull && (candidates.length === 0 || random(3) > 0)) return undefined
  return candidates[random(candidates.length)]
}
