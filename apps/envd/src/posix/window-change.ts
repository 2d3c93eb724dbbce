/**
 * Sends SIGWINCH after a terminal was resized. Linux does so by itself; gVisor does not, and does not report the
 * foreground group either. There all process groups of the session get the signal, which is harmless, because its
 * default action is to do nothing.
 */
import { readFile, readdir } from 'node:fs/promises'
import { kill } from 'node:process'

/** `leader` is the session leader of the terminal. */
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
  /** Foreground process group of the terminal; zero or negative if there is none or the kernel does not report it. */
  readonly foreground: number
}

/** Returns undefined if the process is gone. The name in parentheses may itself contain parentheses (proc(5)). */
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
    // The group has exited.
  }
}
