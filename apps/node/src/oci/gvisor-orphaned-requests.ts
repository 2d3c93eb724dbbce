import { readFileSync } from 'node:fs'
import { threadsOf } from '../linux/processes/threads.ts'

/*
 * gVisor (20240729) has a host process for each process inside, and asks it to map memory: it waits without a timeout
 * on a futex that both share. When the host kernel kills that process meanwhile, nothing wakes gVisor. A dead child
 * alone proves little: the child of a sleeping process may stay dead for hours without harm, and in a process with
 * several threads another thread may have noticed. The proof is that no live child maps the memory of the futex.
 */

/** Lists the waits of a process on memory that it shared with a dead child. */
export function findOrphanedRequests(pid: number): string[] {
  const waits = endlessWaits(pid)
  if (waits.length === 0) return []
  const children = childrenOf(pid).map((child) => parseMappings(readIfThere(`/proc/${child}/maps`)))
  return findLost(waits, parseMappings(readIfThere(`/proc/${pid}/maps`)), children)
}

/** File mapping in a process. */
interface Mapping {
  readonly start: number
  readonly end: number
  readonly offset: number
  /** Device and inode. */
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
    // Memory of a file that no child maps is shared with the gofers, which serve files.
    return ofSameFile.length > 0 && !ofSameFile.some((one) => holds(one, offset))
  })
}

function holds({ start, end, offset }: Mapping, wanted: number): boolean {
  return offset <= wanted && wanted < offset + end - start
}

/** Parses /proc/PID/maps; keeps only file mappings. */
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

/** Lists the futex waits of a process on shared memory without a timeout. */
export function endlessWaits(pid: number): string[] {
  return threadsOf(pid).flatMap((thread) => {
    const call = readIfThere(`/proc/${pid}/task/${thread}/syscall`).trim()
    return isEndlessWait(call) ? [`${thread} ${call}`] : []
  })
}

/** Parses a line of /proc/PID/syscall: call number, arguments in hex, and two registers. */
export function isEndlessWait(line: string): boolean {
  const [call, _address, operation, _value, timeout] = line.split(' ')
  return call === futex && operation === futexWait && timeout === '0x0'
}

const futex = process.arch === 'arm64' ? '98' : '202'

/** FUTEX_WAIT without FUTEX_PRIVATE_FLAG; all other waits of gVisor have the flag. */
const futexWait = '0x0'

/** Returns an empty string when the file is gone. Throws on other errors: they must not look like a lost answer. */
function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ENOENT' || code === 'ESRCH') return ''
    throw error
  }
}
