/** Source of a COPY step, relative to the build directory. */
export interface CopySource {
  /** Paths or patterns. */
  readonly sources: readonly string[]
  readonly target: string
  readonly owner: string
  /** Octal digits, or empty. */
  readonly mode: string
  readonly line: number
}
