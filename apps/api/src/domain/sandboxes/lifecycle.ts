import { Fault } from '@atoll/kit/fault'

/** Actions at the timeout of a sandbox and afterwards, as its creator asked. */
export interface Lifecycle {
  /** Pause the sandbox at its timeout instead of killing it. */
  readonly autoPause: boolean
  /** Keep the memory in an automatic pause, not only the files. */
  readonly autoPauseMemory: boolean
  /** Resume the paused sandbox when traffic arrives. */
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
      'autoPauseMemory: false cannot be combined with autoResume.enabled: true: traffic does not resume a sandbox without memory',
    )
  }
  return { autoPause, autoPauseMemory, autoResume }
}

function invalid(message: string): Fault {
  return new Fault('invalid', 'invalid_lifecycle', message)
}

const shortestWakeSeconds = 300

/** Timeout of a sandbox that is resumed without an explicit timeout. */
export function wakeSeconds(createdWith: number | undefined, maxSeconds: number): number {
  return Math.min(Math.max(createdWith ?? 0, shortestWakeSeconds), maxSeconds)
}
