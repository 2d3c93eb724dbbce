import type { ProcessEvent_EndEvent } from '@atoll/contracts/gen/process/process_pb'

/** Returns the exit code as a shell does: the program's own, or 128 plus the number of the fatal signal. */
export function exitCodeOf(
  end: Pick<ProcessEvent_EndEvent, 'exited' | 'exitCode' | 'status'>,
): number {
  if (end.exited) return end.exitCode
  const [, text = ''] = /^signal: (.*?)(?: \(core dumped\))?$/.exec(end.status) ?? []
  const number = signalNumbers[text] ?? Number(/^signal (\d+)$/.exec(text)?.[1])
  return Number.isInteger(number) ? 128 + number : 1
}

/** envd reports a signal by its description, and as a number if it has none. */
const signalNumbers: Readonly<Record<string, number>> = {
  hangup: 1,
  interrupt: 2,
  quit: 3,
  'illegal instruction': 4,
  'trace/breakpoint trap': 5,
  aborted: 6,
  'bus error': 7,
  'floating point exception': 8,
  killed: 9,
  'user defined signal 1': 10,
  'segmentation fault': 11,
  'user defined signal 2': 12,
  'broken pipe': 13,
  'alarm clock': 14,
  terminated: 15,
  'stack fault': 16,
  'CPU time limit exceeded': 24,
  'file size limit exceeded': 25,
  'virtual timer expired': 26,
  'profiling timer expired': 27,
  'I/O possible': 29,
  'power failure': 30,
  'bad system call': 31,
}
