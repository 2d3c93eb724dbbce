import { readdirSync } from 'node:fs'

/** Lists the thread IDs of a process; empty when the process is gone. */
export function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
}
