import { spawnSync } from 'node:child_process'
import { isatty } from 'node:tty'
import { Fault } from '@atoll/kit/fault'
import type { Host } from './context.ts'

/** Puts the local terminal into raw mode, so that every key reaches the sandbox. Restored however the program exits. */

export interface RawTerminal extends Disposable {
  size(): TerminalSize
  onResize(listener: (size: TerminalSize) => void): void
  /** Resets modes that an aborted program may have left on: alternate screen, mouse, hidden cursor. */
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
  // Covers uncaught errors and calls of process.exit.
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
 * Turns off output processing, which Node.js leaves on in raw mode. The terminal in the sandbox has already processed
 * the output, and a second pass would turn the bare newlines of full-screen programs into CR LF. Leaving raw mode
 * restores the setting.
 */
function disableOutputProcessing(stdin: NodeJS.ReadStream): void {
  const fd = 'fd' in stdin && typeof stdin.fd === 'number' ? stdin.fd : -1
  if (isatty(fd)) spawnSync('stty', ['-opost'], { stdio: [fd, 'ignore', 'ignore'] })
}

const escape = '\u001B['
const modeResets = ['?1000l', '?1002l', '?1003l', '?1006l', '?2004l', '?1047l', '?1l', '?25h', '0m']
const resetSequence = modeResets.map((mode) => `${escape}${mode}`).join('')
