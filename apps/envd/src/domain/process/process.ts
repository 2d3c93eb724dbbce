/** Interface of a spawned process, on pipes or on a terminal. */
import type { ExitStatus } from '@atoll/kit/exit-status'
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
   * Applies backpressure: the program blocks without a consumer. A chunk is valid until the next is requested.
   * Ends at end-of-file.
   */
  readonly chunks: AsyncIterable<Uint8Array>
}

export interface Input {
  /** Resolves when the bytes are written to the pipe or terminal; rejects if it is closed. */
  write(bytes: Uint8Array): Promise<void>
  /** Closes the input. May be called again. */
  end(): void
}

export interface SpawnedProcess {
  readonly pid: number
  readonly outputs: readonly Output[]
  readonly exit: Promise<ExitStatus>
  /** Absent if the program was started without stdin. */
  readonly input?: Input
  /** Present only for terminals. */
  readonly resize?: (size: TerminalSize) => void
  /** Signals this pid only, not its process group. */
  kill(signal: Signal): void
  /** Closes all streams, which ends the outputs. */
  release(): void
}

export interface Spawner {
  /** Throws an `invalid` fault if the process cannot be started. */
  spawnOnPipes(launch: Launch, options: { readonly stdin: boolean }): Promise<SpawnedProcess>
  spawnOnTerminal(launch: Launch, size: TerminalSize): Promise<SpawnedProcess>
  /** Throws an `invalid` fault unless the user can enter the working directory of `launch`. */
  checkDirectory(launch: Launch): void
}

/** Largest output event per stream. */
export const chunkLimitBytes = {
  stdout: 32 * 1024,
  stderr: 32 * 1024,
  pty: 16 * 1024,
} as const satisfies Record<OutputKind, number>
