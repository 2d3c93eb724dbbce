import { Fault } from '@atoll/kit/fault'
import { after } from './sandbox.ts'
import type { RunningSandbox } from './sandbox.ts'

/** Sets the timeout to `seconds` from now, earlier or later than before, capped at the maximum run time. */
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

/** Extends the timeout like `setTimeoutOf`, but never shortens it. */
export function extend(
  sandbox: RunningSandbox,
  limits: { readonly now: Date; readonly seconds: number; readonly maxSeconds: number },
): RunningSandbox {
  const changed = setTimeoutOf(sandbox, limits)
  return changed.endAt > sandbox.endAt ? changed : sandbox
}
