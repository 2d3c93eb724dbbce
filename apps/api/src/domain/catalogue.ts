import type { Resources } from './template.ts'

/** Built-in template that the node can install. */
export interface CatalogueTemplate {
  readonly nodeTemplateId: string
  /** Name in the catalogue, such as `code-interpreter`. */
  readonly name: string
  /** Name that sandboxes are created by, such as `code-interpreter-v1`. */
  readonly alias: string
  readonly description: string
  readonly leastMemoryMb: number
  readonly isInstalled: boolean
}

export interface InstallProgress {
  readonly label: string
  /** Completed share, 0 to 1. */
  readonly fraction: number
}

/** Node operations that the catalogue needs. */
export interface CatalogueNode {
  list(signal: AbortSignal): Promise<readonly CatalogueTemplate[]>
  /** Streams progress and ends once sandboxes can be created from the template. Faults: `disk_full`, `install_failed`. */
  install(
    order: { readonly nodeTemplateId: string; readonly resources: Resources },
    signal: AbortSignal,
  ): AsyncIterable<InstallProgress>
}
