import { spawnSync } from 'node:child_process'
import { isatty } from 'node:tty'
import { Fault } from '@atoll/kit/fault'
import type { Host } from './context.ts'

/** The terminal in front of the user. In raw mode every key goes to the sandbox; however the program ends, it is undone. */

export interface RawTerminal extends Disposable {
  size(): TerminalSize
  onResize(listener: (size: TerminalSize) => void): void
  /** Ends what a program that was cut off may have left on: alternate screen, mouse, hidden cursor. */
  resetModes(): void
}

export interface TerminalSize {
  readonly cols: number
  readonly rows: number
}

export function openRawTerminal({
  stdin,
  stdout,
  process,
}: Pick<Host, 'stdin' | 'stdout' | 'process'>): RawTerminal {
  if (!stdin.isTTY || !stdout.isTTY) {
    throw new Fault('invalid', 'not_a_terminal', 'A shell needs a terminal on stdin and stdout')
  }
  const size = () => ({ cols: stdout.columns || 80, rows: stdout.rows || 24 })
  const listeners: (() => void)[] = []
  const restore = () => {
    stdin.setRawMode(false)
  }
  stdin.setRawMode(true)
  disableOutputProcessing(stdin)
  // Also runs when something throws past every handler or another part calls exit.
  process.on('exit', restore)
  return {
    size,
    onResize(listener) {
      const resized = () => {
        listener(size())
      }
      listeners.push(resized)
      stdout.on('resize', resized)
    },
    resetModes: () => {
      stdout.write(resetSequence)
    },
    [Symbol.dispose]() {
      for (const resized of listeners) stdout.off('resize', resized)
      restore()
      process.off('exit', restore)
    },
  }
}

/**
 * In its raw mode Node.js leaves output processing on: a bare newline, which full-screen programs move down with, would
 * also go to the first column. The terminal in the sandbox has processed the output already. Undone with raw mode.
 */
function disableOutputProcessing(stdin: NodeJS.ReadStream): void {
  const fd = 'fd' in stdin && typeof stdin.fd === 'number' ? stdin.fd : -1
  if (isatty(fd)) spawnSync('stty', ['-opost'], { stdio: [fd, 'ignore', 'ignore'] })
}

const escape = '\u001B['
const modeResets = ['?1000l', '?1002l', '?1003l', '?1006l', '?2004l', '?1047l', '?1l', '?25h', '0m']
const resetSequence = modeResets.map((mode) => `${escape}${mode}`).join('')
