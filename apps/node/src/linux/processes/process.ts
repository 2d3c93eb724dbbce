import { readFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { uptime } from 'node:os'
import type { ProcessIdentity } from '../../domain/sandboxes/process-identity.ts'

const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()

/** Returns undefined when the process does not exist or is a zombie. */
export function identify(pid: number): ProcessIdentity | undefined {
  const { state, ticks } = readStat(pid)
  if (state === 'Z' || state === 'X' || ticks === undefined) return undefined
  return { pid, started: `${bootId}:${ticks}` }
}

/** Tests whether a signal such as SIGSTOP stopped the process. */
export function isStopped(process: ProcessIdentity | undefined): boolean {
  return process !== undefined && isAlive(process) && readStat(process.pid).state === 'T'
}

/** Reads state and start time of a process; both are undefined when it does not exist. */
function readStat(pid: number): Record<'state' | 'ticks', string | undefined> {
  try {
    // The process name in parentheses may contain anything, so count fields from the last parenthesis.
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

/** Returns the age of a process, accurate to 10 ms. */
export function ageNsOf({ started }: ProcessIdentity): bigint {
  const uptimeNs = BigInt(Math.round(uptime() * 100)) * tickNs
  const ageNs = uptimeNs - BigInt(started.split(':')[1] ?? 0) * tickNs
  return ageNs > 0n ? ageNs : 0n
}

/** Clock tick of /proc: 100 Hz on all supported machines. */
const tickNs = 10_000_000n

/** Returns the IDs of all processes whose command line `matches`. */
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

/** Sends SIGKILL; succeeds when the process is gone. */
export function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {}
}
