import { readFileSync } from 'node:fs'
import { threadsOf } from '../linux/threads.ts'

/*
 * gVisor (20240729) has a process on the host for each one inside, and lets it map memory: it asks and waits on a futex
 * that both share, without end. When the kernel kills that process meanwhile, nobody wakes gVisor. That a child is dead
 * says little: of a process inside that sleeps it may stay for hours and do no harm, and of one that has several
 * threads another may have taken note of it already. But no child that lives has the memory of the futex any more.
 */

/** The waits of a process on memory that it shared with a child which is dead. */
export function lostAnswers(pid: number): string[] {
  const waits = endlessWaits(pid)
  if (waits.length === 0) return []
  const children = childrenOf(pid).map((child) => parseMappings(readIfThere(`/proc/${child}/maps`)))
  return findLost(waits, parseMappings(readIfThere(`/proc/${pid}/maps`)), children)
}

/** A part of a file that a process has in its memory. */
interface Mapping {
  readonly start: number
  readonly end: number
  readonly offset: number
  /** Its device and number. */
  readonly file: string
}

export function findLost(
  waits: readonly string[],
  own: readonly Mapping[],
  children: readonly (readonly Mapping[])[],
): string[] {
  const shared = children.flat()
  return waits.filter((wait) => {
    const address = Number(wait.split(' ')[2])
    const mapping = own.find(({ start, end }) => start <= address && address < end)
    if (!mapping) return false
    const ofSameFile = shared.filter(({ file }) => file === mapping.file)
    const offset = mapping.offset + address - mapping.start
    // What no child has anything of is shared with others, who serve it files.
    return ofSameFile.length > 0 && !ofSameFile.some((one) => holds(one, offset))
  })
}

function holds({ start, end, offset }: Mapping, wanted: number): boolean {
  return offset <= wanted && wanted < offset + end - start
}

/** Of /proc/PID/maps, those of files. */
export function parseMappings(text: string): Mapping[] {
  const lines = text.matchAll(/^(\w+)-(\w+) \S+ (\w+) (\S+ [1-9]\d*)\b/gm)
  return Array.from(lines, ([, start = '', end = '', offset = '', file = '']) => {
    const [from, to, at] = [start, end, offset].map((hex) => Number.parseInt(hex, 16))
    return { start: from ?? 0, end: to ?? 0, offset: at ?? 0, file }
  })
}

export function childrenOf(pid: number): string[] {
  return threadsOf(pid).flatMap((thread) =>
    readIfThere(`/proc/${pid}/task/${thread}/children`).split(' ').filter(Boolean),
  )
}

/** The waits of a process for others: on memory that is shared with them, and without a limit in time. */
export function endlessWaits(pid: number): string[] {
  return threadsOf(pid).flatMap((thread) => {
    const call = readIfThere(`/proc/${pid}/task/${thread}/syscall`).trim()
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

/** Nothing when it has gone. Any other failure is none that a sandbox should die of. */
function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ENOENT' || code === 'ESRCH') return ''
    throw error
  }
}
