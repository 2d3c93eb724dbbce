import { Fault } from '@atoll/kit/fault'
import { after } from './sandbox.ts'
import type { RunningSandbox } from './sandbox.ts'

/** The rules of a sandbox's time. */

/** Ends it `seconds` from now, sooner or later than before; asking for too much gives the most there is. */
export function setTimeoutOf(
  sandbox: RunningSandbox,
  limits: { readonly now: Date; readonly seconds: number; readonly maxSeconds: number },
): RunningSandbox {
  const latest = after(sandbox.startedAt, limits.maxSeconds)
  if (limits.now >= latest) {
    throw new Fault(
      'invalid',
      'max_length_exceeded',
      `Max instance length exceeded: a sandbox may run for ${limits.maxSeconds} seconds at most`,
    )
  }
  const wanted = after(limits.now, limits.seconds)
  return { ...sandbox, endAt: wanted < latest ? wanted : latest }
}

/** Like `setTimeoutOf`, but never takes time away. */
export function extend(
  sandbox: RunningSandbox,
  limits: { readonly now: Date; readonly seconds: number; readonly maxSeconds: number },
): RunningSandbox {
  const changed = setTimeoutOf(sandbox, limits)
  return changed.endAt > sandbox.endAt ? changed : sandbox
}
