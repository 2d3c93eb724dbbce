import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import type { Sandbox } from '../domain/sandbox.ts'
import { postpone } from '../domain/sandbox-pause.ts'
import type { SandboxStore } from '../domain/sandbox-store.ts'
import type { Ending } from './ending.ts'
import type { Pausing } from './pause-sandbox.ts'

interface ExpiryPorts {
  readonly store: SandboxStore
  readonly ending: Ending
  readonly pausing: Pausing
  readonly clock: Clock
  readonly log: Logger
}

/** However far the next end is: clocks are set, and nudges may be missed. */
const longestWaitMs = 1_000
const batch = 100
/** How long a sandbox that cannot be paused runs on before it is tried again: longer each time. */
const retrySeconds = [1, 2, 4, 8, 16, 32, 60] as const
/**
 * How often the node may fail to keep memory before that is given up and the files alone are kept: nothing runs on for
 * ever, and most programs let go of what stands in the way within the seconds that this takes.
 */
const memoryTries = 4

/** Makes the pass that ends or pauses what is due, and returns the milliseconds until the next end. */
export function createExpiry(ports: ExpiryPorts): () => Promise<number> {
  const { store, ending, clock } = ports
  const failures = new Map<string, Failures>()
  const underway = new Set<string>()
  // Its time may have been extended since the list was read.
  const isDue = ({ endAt }: Sandbox) => endAt !== undefined && endAt <= clock.now()

  return async () => {
    for (const id of await store.listExpired(clock.now(), batch)) {
      const isKilled = await ending.begin(
        id,
        'reached the end of its timeout',
        (current) => isDue(current) && !current.lifecycle.autoPause,
      )
      if (isKilled) void ending.tryFinish(id)
      else if (!underway.has(id)) await putAside(ports, { id, isDue, failures, underway })
    }
    const next = await store.nextEnd()
    if (!next) return longestWaitMs
    return Math.min(Math.max(next.getTime() - clock.now().getTime(), 0), longestWaitMs)
  }
}

/** How often in a row one could not be paused. */
interface Failures {
  readonly attempts: number
  /** Those that were the node's answer: one that cannot be asked says nothing against the memory. */
  readonly refusals: number
  /** Until when it runs on; another end was set by somebody else, and it is as if it had not been tried. */
  readonly endAt: Date
}

const none = { attempts: 0, refusals: 0 }

interface Due {
  readonly id: string
  readonly isDue: (sandbox: Sandbox) => boolean
  readonly failures: Map<string, Failures>
  /** Those that are being paused, or told to run on. */
  readonly underway: Set<string>
}

/** Returns once the pause is written down; that which follows is not waited for. */
async function putAside(ports: ExpiryPorts, due: Due): Promise<void> {
  const { store, pausing, log } = ports
  const { id, isDue, failures, underway } = due
  const sandbox = await store.find(id)
  if (!sandbox?.lifecycle.autoPause || !isDue(sandbox)) return
  const known = failures.get(id)
  if (known?.endAt.getTime() !== sandbox.endAt?.getTime()) failures.delete(id)
  const isGivenUp = (failures.get(id) ?? none).refusals >= memoryTries
  const hasSameEnd = ({ endAt }: Sandbox) => endAt?.getTime() === sandbox.endAt?.getTime()
  underway.add(id)
  const begin = async () => {
    const isWanted = sandbox.lifecycle.autoPauseMemory && !isGivenUp
    const keepMemory = isWanted && (await pausing.keepsMemory())
    return pausing.pauseIf(id, keepMemory, hasSameEnd)
  }
  const begun = begin()
  const carryOut = async () => {
    try {
      const pause = await begun
      await pause?.done
      failures.delete(id)
      const isLost = pause && sandbox.lifecycle.autoPauseMemory && !pause.keepsMemory
      if (isLost) log.warn({ sandboxId: id }, 'a sandbox was paused without its memory')
    } catch (error) {
      await runOn(ports, due, error)
    }
  }
  void carryOut().finally(() => underway.delete(id))
  await begun.catch(() => {})
}

/** Nothing is lost for want of a pause: it runs on, and is tried again. */
async function runOn({ store, clock, log }: ExpiryPorts, due: Due, error: unknown): Promise<void> {
  const { id, failures } = due
  const { kind, reason } = Fault.from(error)
  if (kind === 'not_found') return void failures.delete(id)
  const before = failures.get(id) ?? none
  const attempts = before.attempts + 1
  const refusals = before.refusals + (reason === 'node_unavailable' ? 0 : 1)
  const seconds = retrySeconds[Math.min(attempts, retrySeconds.length) - 1] ?? 0
  log[attempts < retrySeconds.length ? 'warn' : 'error'](
    { err: error, sandboxId: id, attempt: attempts },
    `a sandbox could not be paused at the end of its time; it runs on for ${seconds} s`,
  )
  let endAt: Date | undefined
  await store
    .update(id, (current) => {
      const after = postpone(current, clock.now(), seconds)
      endAt = after === current ? undefined : after.endAt
      return after
    })
    .catch((failure: unknown) => {
      endAt = undefined
      log.warn({ err: failure, sandboxId: id }, 'the end of a sandbox could not be postponed')
    })
  // Somebody may have given it more time meanwhile.
  if (endAt) failures.set(id, { attempts, refusals, endAt })
  else failures.delete(id)
}
