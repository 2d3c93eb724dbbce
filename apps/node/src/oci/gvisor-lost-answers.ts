import { readFileSync } from 'node:fs'
import { identify } from '../linux/process.ts'
import { threadsOf } from '../linux/threads.ts'

/*
 * gVisor (20240729) has a process on the host for each one inside, and lets it map memory: it asks and waits on a futex
 * that both share, without end. When the kernel kills that process meanwhile, nobody wakes gVisor.
 */

/** Whether a child died and its parent has not taken note of it. */
export function hasDeadChild(pid: number): boolean {
  return threadsOf(pid)
    .flatMap((thread) => read(`/proc/${pid}/task/${thread}/children`).split(' '))
    .some((child) => /^\d+$/.test(child) && identify(Number(child)) === undefined)
}

/** The waits of a process for others: on memory that is shared with them, and without a limit in time. */
export function endlessWaits(pid: number): string[] {
  return threadsOf(pid).flatMap((thread) => {
    const call = read(`/proc/${pid}/task/${thread}/syscall`)
    return isEndlessWait(call) ? [`${thread} ${call}`] : []
  })
}

/** Of a line of /proc/PID/syscall: its number, its arguments in hex, and two registers. */
export function isEndlessWait(line: string): boolean {
  const [call, _address, operation, _value, timeout] = line.split(' ')
  return call === futex && operation === futexWait && timeout === '0x0'
}

const futex = process.arch === 'arm64' ? '98' : '202'

/** Without the flag for memory of one process alone, which all others of gVisor's waits have. */
const futexWait = '0x0'

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1').trim()
  } catch {
    return ''
  }
}
