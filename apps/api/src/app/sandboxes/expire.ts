import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import { isRunning } from '../../domain/sandboxes/sandbox.ts'
import type { Sandbox } from '../../domain/sandboxes/sandbox.ts'
import { postpone } from '../../domain/sandboxes/sandbox-pause.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import { longestExpiryWaitMs } from '../end-changes.ts'
import type { Fleet } from '../nodes/fleet.ts'
import type { Ending } from './ending.ts'
import type { Pausing } from './pause-sandbox.ts'

interface ExpiryPorts {
  readonly store: SandboxStore
  readonly fleet: Pick<Fleet, 'ids' | 'reaches'>
  readonly ending: Ending
  readonly pausing: Pausing
  readonly clock: Clock
  readonly log: Logger
}

const batch = 100
/** Extra run time before each retry of a failed pause. */
const retrySeconds = [1, 2, 4, 8, 16, 32, 60] as const
/**
 * Failed attempts to pause with memory before only the files are kept. No sandbox may run forever, and most programs
 * release whatever blocks a checkpoint within these seconds.
 */
const memoryTries = 4

/** Creates the pass that kills or pauses expired sandboxes. A pass returns the milliseconds until the next one. */
export function createExpiry(ports: ExpiryPorts): () => Promise<number> {
  const { store, fleet, ending, clock } = ports
  const failures = new Map<string, Failures>()
  const underway = new Set<string>()
  // The timeout may have been extended since the list was read.
  const isDue = ({ endAt }: Sandbox) => endAt !== undefined && endAt <= clock.now()

  return async () => {
    const nodeIds = fleet.ids()
    for (const id of await store.listExpired(clock.now(), batch, nodeIds)) {
      const killed = await ending.begin(
        id,
        'reached the end of its timeout',
        // A client may have paused the sandbox since the list was read.
        (current) => isRunning(current) && isDue(current) && !current.lifecycle.autoPause,
      )
      if (killed) void ending.tryFinish(killed)
      else if (!underway.has(id)) await pauseExpired(ports, { id, isDue, failures, underway })
    }
    const next = await store.nextEnd(nodeIds)
    if (!next) return longestExpiryWaitMs
    return Math.min(Math.max(next.getTime() - clock.now().getTime(), 0), longestExpiryWaitMs)
  }
}

/** Consecutive failed pauses of one sandbox. */
interface Failures {
  readonly attempts: number
  /** Attempts that the node rejected. An unreachable node does not count: the memory may be fine. */
  readonly refusals: number
  /** End time set by the last retry. If the record has another end time, a client changed it and the count restarts. */
  readonly endAt: Date
}

const noFailures = { attempts: 0, refusals: 0 }

interface ExpiredSandbox {
  readonly id: string
  readonly isDue: (sandbox: Sandbox) => boolean
  readonly failures: Map<string, Failures>
  /** IDs of sandboxes that are being paused or postponed. */
  readonly underway: Set<string>
}

/** Returns once the pause is recorded; the pause itself continues in the background. */
async function pauseExpired(ports: ExpiryPorts, expired: ExpiredSandbox): Promise<void> {
  const { store, fleet, pausing, log } = ports
  const { id, isDue, failures, underway } = expired
  const sandbox = await store.find(id)
  if (!sandbox?.lifecycle.autoPause || !isDue(sandbox)) return
  // Another process reaches the node of the sandbox.
  if (!fleet.reaches(sandbox.nodeId)) return
  const known = failures.get(id)
  if (known?.endAt.getTime() !== sandbox.endAt?.getTime()) failures.delete(id)
  const isGivenUp = (failures.get(id) ?? noFailures).refusals >= memoryTries
  const hasSameEnd = ({ endAt }: Sandbox) => endAt?.getTime() === sandbox.endAt?.getTime()
  underway.add(id)
  const begin = async () => {
    const isWanted = sandbox.lifecycle.autoPauseMemory && !isGivenUp
    const keepMemory = isWanted && (await pausing.keepsMemory(sandbox.nodeId))
    return pausing.pauseIf(id, keepMemory, hasSameEnd)
  }
  const begun = begin()
  const finish = async () => {
    try {
      const pause = await begun
      await pause?.done
      failures.delete(id)
      const isMemoryLost = pause && sandbox.lifecycle.autoPauseMemory && !pause.keepsMemory
      if (isMemoryLost)
        log.warn(
          { sandboxId: id },
          'a sandbox reached its timeout and was paused without its memory, which could not be saved',
        )
    } catch (error) {
      await postponeEnd(ports, expired, error)
    }
  }
  void finish().finally(() => underway.delete(id))
  await begun.catch(() => {})
}

/** Postpones the end of a sandbox that could not be paused, so that it keeps running until the next attempt. */
async function postponeEnd(
  { store, clock, log }: ExpiryPorts,
  expired: ExpiredSandbox,
  error: unknown,
): Promise<void> {
  const { id, failures } = expired
  const { kind, reason } = Fault.from(error)
  if (kind === 'not_found') return void failures.delete(id)
  const before = failures.get(id) ?? noFailures
  const attempts = before.attempts + 1
  const refusals = before.refusals + (reason === 'node_unavailable' ? 0 : 1)
  const seconds = retrySeconds[Math.min(attempts, retrySeconds.length) - 1] ?? 0
  log[attempts < retrySeconds.length ? 'warn' : 'error'](
    { err: error, sandboxId: id, attempt: attempts },
    `a sandbox could not be paused at its timeout; it keeps running for ${seconds} s`,
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
      log.warn(
        { err: failure, sandboxId: id },
        'the end time of a sandbox could not be postponed; the next pass tries again',
      )
    })
  // `endAt` is undefined if postponing failed or the sandbox was extended or stopped meanwhile.
  if (endAt) failures.set(id, { attempts, refusals, endAt })
  else failures.delete(id)
}
