import { readdirSync } from 'node:fs'

/** Ids of the threads of a process, none when it is gone. */
export function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
}
