import type { Logger } from '@atoll/kit/log'
import { retryMs, startLoop } from '../loop.ts'
import type { Loop } from '../loop.ts'
import type { Fleet } from './fleet.ts'
import { isLarge, paceOf } from './pace.ts'

/**
 * Starts a loop that visits one node. In a large fleet, visits are rarer and spread over time, also after failures and after
 * a start: otherwise an outage of the store would end with a visit of every node in each second.
 */
export function startVisits(
  name: string,
  visit: (signal: AbortSignal) => Promise<number>,
  parts: {
    readonly fleet: Pick<Fleet, 'size'>
    readonly log: Logger
    /** Makes the first visit at once, also in a large fleet. */
    readonly isUrgent?: boolean
    /** Whether this process makes the visits. If not, it visits the node after a nudge only. */
    readonly isMine?: () => boolean
  },
): Loop {
  const { fleet, log, isUrgent = false, isMine = () => true } = parts
  let mayVisit = isUrgent
  let isNudged = false
  const pass = async (signal: AbortSignal): Promise<number> => {
    const isPostponed = !mayVisit && isLarge(fleet.size())
    const isSkipped = !isNudged && !isMine()
    mayVisit = true
    isNudged = false
    if (isPostponed) return paceOf(firstPauseMs, fleet.size())
    return paceOf(isSkipped ? skipMs : await visit(signal), fleet.size())
  }
  const loop = startLoop(name, pass, log, () => paceOf(retryMs, fleet.size()))
  return {
    ...loop,
    nudge() {
      isNudged = true
      loop.nudge()
    },
  }
}

/** Time until the next check whether this process makes the visits. */
const skipMs = 5_000
/** Stretched with the size of the fleet. */
const firstPauseMs = 1_000
