/**
 * Linux tells the foreground of a terminal that its size changed. gVisor tells nobody, and not who the foreground is
 * either: there every group of the session is told, which disturbs nobody, since who does not ask for SIGWINCH never
 * notices it.
 */
import { readFile, readdir } from 'node:fs/promises'
import { kill } from 'node:process'

/** `leader` is the process that the terminal was made for. */
export async function notifyWindowChange(leader: number): Promise<void> {
  const leaderStat = await readStat(leader)
  if (leaderStat === undefined || leaderStat.foreground > 0) return
  const names = await readdir('/proc').catch(() => [])
  const stats = await Promise.all(names.filter(isPid).map((name) => readStat(Number(name))))
  const members = stats.filter((stat) => stat?.session === leader)
  for (const group of new Set(members.map((stat) => stat?.group ?? leader))) sendSignal(group)
}

interface Stat {
  readonly group: number
  readonly session: number
  /** The foreground group of its terminal; not positive when there is none, or the kernel does not say. */
  readonly foreground: number
}

/** Undefined when the process is gone. proc(5): the name in parentheses may hold anything, also parentheses. */
async function readStat(pid: number): Promise<Stat | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => undefined)
  if (text === undefined) return undefined
  const [, , group, session, , foreground] = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return { group: Number(group), session: Number(session), foreground: Number(foreground) }
}

function isPid(name: string): boolean {
  return /^\d+$/.test(name)
}

function sendSignal(group: number): void {
  try {
    kill(-group, 'SIGWINCH')
  } catch {
    // It ended meanwhile.
  }
}
