import type { LogLevel } from '../../domain/sandboxes/log.ts'

export interface BuildProgress {
  /** Writes to the build log. Resolves when more may be written, since the reader may be slower than the step. */
  readonly note: (step: string, level: LogLevel, message: string) => Promise<void>
  readonly signal: AbortSignal
}

/** The kernel limits the names of all layers of a mount to one page. */
export const maxLayers = 40
