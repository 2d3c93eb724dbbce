import { readFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { uptime } from 'node:os'
import type { ProcessIdentity } from '../domain/sandbox.ts'

const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()

/** Undefined when no such process lives (a zombie does not). */
export function identify(pid: number): ProcessIdentity | undefined {
  const { state, ticks } = readStat(pid)
  if (state === 'Z' || state === 'X' || ticks === undefined) return undefined
  return { pid, started: `${bootId}:${ticks}` }
}

/** Whether a signal stopped the process, such as SIGSTOP. */
export function isStopped(process: ProcessIdentity | undefined): boolean {
  return process !== undefined && isAlive(process) && readStat(process.pid).state === 'T'
}

/** The state and the start time of a process; undefined when there is none. */
function readStat(pid: number): Record<'state' | 'ticks', string | undefined> {
  try {
    // The name in parentheses may hold anything: count from the last one.
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { state: fields[0], ticks: fields[19] }
  } catch {
    return { state: undefined, ticks: undefined }
  }
}

export function isAlive(process: ProcessIdentity): boolean {
  return identify(process.pid)?.started === process.started
}

/** How long a process has been running, to the hundredth of a second. */
export function ageNsOf({ started }: ProcessIdentity): bigint {
  const uptimeNs = BigInt(Math.round(uptime() * 100)) * tickNs
  const ageNs = uptimeNs - BigInt(started.split(':')[1] ?? 0) * tickNs
  return ageNs > 0n ? ageNs : 0n
}

/** The unit of /proc, on every machine that we run on. */
const tickNs = 10_000_000n

/** Ids of all processes whose command line `matches`. */
export async function findProcesses(matches: (args: string[]) => boolean): Promise<number[]> {
  const found: number[] = []
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const line = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '')
    if (line && matches(line.split('\0'))) found.push(Number(name))
  }
  return found
}

export function killIfAlive(process: ProcessIdentity | undefined): void {
  if (process && isAlive(process)) killProcess(process.pid)
}

/** Sends SIGKILL; a process that is gone already is what was wanted. */
export function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {}
}
