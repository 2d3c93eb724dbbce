import { Fault } from '@atoll/kit/fault'

/** What its creator wants to happen to a sandbox when its time is over, and after that. */
export interface Lifecycle {
  /** Pause it at the end of its time instead of killing it. */
  readonly autoPause: boolean
  /** Whether that keeps its memory as well as its files. */
  readonly autoPauseMemory: boolean
  /** Wake it when traffic for it arrives while it is paused. */
  readonly autoResume: boolean
}

export function toLifecycle(wanted: {
  readonly [Name in keyof Lifecycle]?: boolean | undefined
}): Lifecycle {
  const { autoPause = false, autoPauseMemory = true, autoResume = false } = wanted
  if (!autoPauseMemory && !autoPause) {
    throw invalid('autoPauseMemory: false needs autoPause: true')
  }
  if (!autoPauseMemory && autoResume) {
    throw invalid(
      'autoPauseMemory: false cannot be combined with autoResume.enabled: true: a sandbox without its memory is not woken by traffic',
    )
  }
  return { autoPause, autoPauseMemory, autoResume }
}

function invalid(message: string): Fault {
  return new Fault('invalid', 'invalid_lifecycle', message)
}

const shortestWakeSeconds = 300

/** How long a sandbox runs that was woken without anybody saying for how long. */
export function wakeSeconds(createdWith: number | undefined, maxSeconds: number): number {
  return Math.min(Math.max(createdWith ?? 0, shortestWakeSeconds), maxSeconds)
}
