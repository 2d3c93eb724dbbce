/** Asks for a paused sandbox of another node. */
export interface FetchRequest {
  readonly sandboxId: string
  /** Content to fetch: the generation that was paused. */
  readonly keptGeneration: number
  /** New generation of the sandbox. */
  readonly generation: number
  /** The memory is not needed. */
  readonly boot: boolean
}
