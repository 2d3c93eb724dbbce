import { writeFileSync } from 'node:fs'
import type { ProcessIdentity } from '../domain/sandbox.ts'
import { threadsOf } from './threads.ts'

/**
 * Lets the kernel fire the timers of a process up to so much too late, and so several of them at once. What a thread
 * waits for besides time still wakes it at once. Where it cannot be had, timers are only too exact.
 *
 * These files are the kernel's, nothing of it waits for a disk: on a full machine a hundred turns of the thread pool
 * would take seconds instead of half a millisecond.
 */
export function setTimerSlack({ pid }: Pick<ProcessIdentity, 'pid'>, slackNs: number): void {
  // A thread that begins meanwhile has the slack of the one that began it: after a second pass none is left out.
  for (const _ of passes) {
    for (const thread of threadsOf(pid)) {
      try {
        writeFileSync(`/proc/${thread}/timerslack_ns`, String(slackNs))
      } catch {}
    }
  }
}

const passes = [1, 2]
