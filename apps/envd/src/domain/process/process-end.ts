/** End event of a process. Clients compare its texts, so they are part of the wire format. */
import type { ExitStatus } from '@atoll/kit/exit-status'

export interface ProcessEnd {
  readonly exitCode: number
  readonly exited: boolean
  readonly status: string
  readonly error?: string
}

export function toProcessEnd(exit: ExitStatus): ProcessEnd {
  if (exit.by === 'signal') {
    const status = `signal: ${signalTexts[exit.signal] ?? `signal ${exit.signal}`}`
    return { exitCode: -1, exited: false, status, error: status }
  }
  const status = `exit status ${exit.code}`
  const end = { exitCode: exit.code, exited: true, status }
  return exit.code === 0 ? end : { ...end, error: status }
}

const signalTexts: Readonly<Record<number, string>> = {
  1: 'hangup',
  2: 'interrupt',
  3: 'quit',
  4: 'illegal instruction',
  5: 'trace/breakpoint trap',
  6: 'aborted',
  7: 'bus error',
  8: 'floating point exception',
  9: 'killed',
  10: 'user defined signal 1',
  11: 'segmentation fault',
  12: 'user defined signal 2',
  13: 'broken pipe',
  14: 'alarm clock',
  15: 'terminated',
  16: 'stack fault',
  17: 'child exited',
  18: 'continued',
  19: 'stopped (signal)',
  20: 'stopped',
  21: 'stopped (tty input)',
  22: 'stopped (tty output)',
  23: 'urgent I/O condition',
  24: 'CPU time limit exceeded',
  25: 'file size limit exceeded',
  26: 'virtual timer expired',
  27: 'profiling timer expired',
  28: 'window changed',
  29: 'I/O possible',
  30: 'power failure',
  31: 'bad system call',
}
