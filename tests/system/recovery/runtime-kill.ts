/** Kills commands and processes of the runtime in the middle of their work. */
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { cells } from '../host-state.ts'
import type { Names } from '../host-state.ts'
import type { Random } from '../mutations.ts'

/** Commands of runsc, and the processes that runsc starts for a sandbox. */
const commands = ['checkpoint', 'restore', 'pause', 'resume'] as const
const processes = ['boot', 'gofer'] as const
export const targets = [...commands, ...processes]
export type Target = (typeof targets)[number]

export interface RuntimeKill {
  readonly target: Target
  readonly cellId: string | undefined
  /** Owner of the cell after the kill. */
  readonly sandboxId: string | undefined
}

/** Longest delay before the kill; pause and resume take only a moment. */
const maxDelayMs = { pause: 30, resume: 30, checkpoint: 200, restore: 200, boot: 300, gofer: 300 }

/**
 * Waits for a process of this kind and kills it at a random moment. Returns undefined if none appeared before the abort.
 */
export async function killRuntimeProcess(
  target: Target,
  names: Names,
  { random, signal }: { readonly random: Random; readonly signal: AbortSignal },
): Promise<RuntimeKill | undefined> {
  while (!signal.aborted) {
    const victim = await findVictim(target, names)
    // A plain delay: the kill must be able to come at any moment.
    await pause(victim ? random(maxDelayMs[target]) : 1)
    if (!victim || !(await isInProgress(target, names, victim.cellId))) continue
    // The PID may have been reused.
    if (titleOf(victim.pid) !== victim.title) continue
    try {
      process.kill(victim.pid, 'SIGKILL')
    } catch {
      continue // the process has exited
    }
    const { cellId } = victim
    const sandboxId = (await cells(names.dataDir)).find((cell) => cell.cellId === cellId)?.owner
    return { target, cellId, sandboxId }
  }
  return undefined
}

interface Victim {
  readonly pid: number
  readonly title: string
  readonly cellId: string | undefined
}

async function findVictim(target: Target, names: Names): Promise<Victim | undefined> {
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const title = titleOf(Number(name))
    const [program = '', ...args] = title.split('\0')
    // Skip wrappers that will exec runsc.
    if (!program.includes('runsc') || !args.includes(target)) continue
    if (!args.includes(`--root=${names.runDir}/state/runsc`)) continue
    const cellId = /\/cells\/(\w+)\/bundle/.exec(title)?.[1] ?? args.findLast(Boolean)
    if (await isInProgress(target, names, cellId)) return { pid: Number(name), title, cellId }
  }
  return undefined
}

/** Tests whether the target is at work: commands always are, processes until the sandbox runs. */
async function isInProgress(
  target: Target,
  { dataDir }: Names,
  cellId: string | undefined,
): Promise<boolean> {
  if (commands.some((command) => command === target)) return true
  const cell = (await cells(dataDir)).find((candidate) => candidate.cellId === cellId)
  return cell?.phase === 'resuming' || cell?.phase === 'making'
}

/** Reads synchronously: the process may be gone a moment later. */
function titleOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}
