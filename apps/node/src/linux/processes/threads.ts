import { readdirSync } from 'node:fs'

/** Lists the thread IDs of a process; empty when the process is gone. */
export function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
}

/**
 * Changes a setting of every thread of a process. Ignores errors: a thread may end at any moment. A new thread inherits the
 * setting of its parent, so the second pass catches threads that started during the first.
 */
export function changeThreads(pid: number, change: (thread: string) => void): void {
  for (const _ of passes) {
    for (const thread of threadsOf(pid)) {
      try {
        change(thread)
      } catch {}
    }
  }
}

const passes = [1, 2]
