import type { ContentName } from './content-name.ts'

/** Asks for a paused sandbox of another node, with this content. */
export interface FetchRequest extends ContentName {
  readonly sandboxId: string
  /** New generation of the sandbox. */
  readonly generation: number
  /** The memory is not needed. */
  readonly boot: boolean
}
