import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '@atoll/kit/log'
import type { Member } from '../nodes/fleet.ts'
import type { Ending } from './ending.ts'

const firstDelayMs = 50
const longestDelayMs = 5_000

/** Receives events from the node when sandboxes end by themselves; reconnects when the connection is lost. */
export function startWatch(deps: {
  readonly member: Member
  readonly ending: Ending
  readonly log: Logger
  /** Called after a lost connection: the reconciler has to find the missed ends. */
  readonly onLost: () => void
}): { close(): Promise<void> } {
  const closing = new AbortController()
  const done = follow(deps, closing.signal)
  return {
    async close() {
      closing.abort()
      await done
    },
  }
}

async function follow(deps: Parameters<typeof startWatch>[0], signal: AbortSignal): Promise<void> {
  const { member, ending, log, onLost } = deps
  let delayMs = firstDelayMs
  while (!signal.aborted) {
    try {
      const nodeId = member.facts()?.id ?? ''
      for await (const end of member.sandboxes.watchEnds(signal)) {
        delayMs = firstDelayMs
        // An agent on outdated data does not know what became of its sandboxes.
        if (member.isRegistered()) await ending.ended(nodeId, end)
      }
    } catch (error) {
      if (!signal.aborted)
        log.warn(
          { err: error },
          'the connection that reports events of the node broke; it is opened again',
        )
    }
    await sleep(delayMs, undefined, { signal }).catch(() => {})
    delayMs = Math.min(delayMs * 2, longestDelayMs)
    if (!signal.aborted) onLost()
  }
}
