import type { Setup } from '../sandboxes/setup.ts'

/** Built-in template that is installed on demand. */
export interface CatalogueTemplate {
  /** ID on the node. */
  readonly templateId: string
  /** Name in the catalogue, such as `code-interpreter`. */
  readonly name: string
  /** Name that sandboxes are created by, such as `code-interpreter-v1`. */
  readonly alias: string
  readonly description: string
  /** Memory that its programs need. */
  readonly leastMemoryMb: number
  readonly setup: Setup
}
