/** What the rest of the daemon needs from a running program, whether it hangs on pipes or on a terminal. */
import type { Exit } from '@atoll/kit/exit'
import type { Launch } from './launch.ts'

export type OutputKind = 'stdout' | 'stderr' | 'pty'

export type Signal = 'SIGKILL' | 'SIGTERM'

export interface TerminalSize {
  readonly cols: number
  readonly rows: number
}

export interface Output {
  readonly kind: OutputKind
  /**
   * Reads only when asked for more: who does not iterate slows the program down. A chunk is good until then. Ends at
   * end-of-file.
   */
  readonly chunks: AsyncIterable<Uint8Array>
}

export interface Input {
  /** Resolves when the program's side has taken the bytes; rejects when it never will. */
  write(bytes: Uint8Array): Promise<void>
  /** Lets the program see end-of-file. May be called again. */
  end(): void
}

export interface SpawnedProcess {
  readonly pid: number
  readonly outputs: readonly Output[]
  readonly exit: Promise<Exit>
  /** Absent when the program was started without an input. */
  readonly input?: Input
  /** Only of programs that have a terminal. */
  readonly resize?: (size: TerminalSize) => void
  /** To this one pid, not its group. */
  kill(signal: Signal): void
  /** Lets go of all streams; outputs end. */
  release(): void
}

export interface Spawner {
  /** An `invalid` fault when the system refuses. */
  spawnOnPipes(launch: Launch, options: { readonly stdin: boolean }): Promise<SpawnedProcess>
  spawnOnTerminal(launch: Launch, size: TerminalSize): Promise<SpawnedProcess>
  /** An `invalid` fault unless `path` is a directory that this launch could enter. */
  checkDirectory(launch: Launch): void
}

/** What is read becomes events of at most this size. */
export const chunkLimitBytes = {
  stdout: 32 * 1024,
  stderr: 32 * 1024,
  pty: 16 * 1024,
} as const satisfies Record<OutputKind, number>
