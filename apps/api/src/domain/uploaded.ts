/** Contents that nodes have uploaded to the object store, or may have. */
export interface Uploaded {
  readonly contents: readonly PausedContent[]
  /** IDs on the node that took the snapshots. */
  readonly snapshotIds: readonly string[]
  /** IDs on the node that built the templates. */
  readonly nodeTemplateIds: readonly string[]
}

/** Identifies what one pause of a sandbox kept. */
export interface PausedContent {
  readonly id: string
  readonly keptGeneration: number
  readonly keptId: string
}
