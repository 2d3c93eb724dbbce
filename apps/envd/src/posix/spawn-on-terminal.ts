/** Starts programs on their own terminal, in a new session. */
import { kill } from 'node:process'
import { ReadStream } from 'node:tty'
import type { ExitStatus } from '@atoll/kit/exit-status'
import { Fault } from '@atoll/kit/fault'
import { guestExecArguments } from '../domain/process/launch.ts'
import type { Launch } from '../domain/process/launch.ts'
import type { SpawnedProcess, TerminalSize } from '../domain/process/process.ts'
import type { TerminalAddon } from './pty-addon.ts'
import { toProcessInput, untilClosed } from './process-streams.ts'
import { notifyWindowChange } from './window-change.ts'

export function spawnOnTerminal(
  addon: TerminalAddon,
  guestProgram: string,
  launch: Launch,
  size: TerminalSize,
): SpawnedProcess {
  const env = Object.entries(launch.env).map(([name, value]) => `${name}=${value}`)
  const exit = Promise.withResolvers<ExitStatus>()
  const { fd, pid } = fork()
  const stream = new ReadStream(fd)
  const input = toProcessInput(stream)
  void exit.promise.then(() => destroyWhenQuiet(stream))
  return {
    pid,
    outputs: [{ kind: 'pty', chunks: untilClosed(stream) }],
    exit: exit.promise,
    input,
    resize({ cols, rows }) {
      if (stream.destroyed) return
      addon.resize(fd, cols, rows)
      void notifyWindowChange(pid)
    },
    kill: (signal) => void kill(pid, signal),
    release: () => void stream.destroy(),
  }

  function fork(): { readonly fd: number; readonly pid: number } {
    const args = guestExecArguments(launch)
    const { cols, rows } = size
    try {
      return addon.fork(guestProgram, args, env, '/', cols, rows, -1, -1, true, '', onExit)
    } catch (cause) {
      throw new Fault(
        'invalid',
        'spawn_failed',
        'The system refused to open a terminal. Close other terminals and retry.',
        { cause },
      )
    }
  }

  function onExit(code: number, signal: number): void {
    exit.resolve(signal > 0 ? { by: 'signal', signal } : { by: 'exit', code })
  }
}

/**
 * Linux hangs up the terminal when the session leader exits, and reads end with EIO. Other kernels do not; there
 * the output ends after a quiet interval. A slow reader loses nothing, because unread bytes stay in the stream's
 * buffer.
 */
function destroyWhenQuiet(stream: ReadStream): void {
  let seen = -1
  const timer = setInterval(() => {
    if (stream.readableLength === 0 && stream.bytesRead === seen) stream.destroy()
    if (stream.destroyed) clearInterval(timer)
    seen = stream.bytesRead
  }, quietMs)
}

const quietMs = 250
