import { writeFileSync } from 'node:fs'
import { changeThreads } from './threads.ts'
import type { ProcessIdentity } from '../../domain/sandboxes/process-identity.ts'

/**
 * Lets the kernel delay the timers of a process by up to `slackNs` and fire several at once. Other events still wake a
 * thread immediately. Ignores errors: without slack, timers are only more exact than needed.
 *
 * Writes synchronously because kernel files never wait for a disk: on a full machine a hundred turns of the thread pool
 * take seconds instead of half a millisecond.
 */
export function setTimerSlack({ pid }: Pick<ProcessIdentity, 'pid'>, slackNs: number): void {
  changeThreads(pid, (thread) => writeFileSync(`/proc/${thread}/timerslack_ns`, String(slackNs)))
}
