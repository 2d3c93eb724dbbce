/** Contents that nodes have uploaded to the object store, or may have. */
export interface Uploaded {
  readonly contents: readonly PausedContent[]
  readonly snapshotIds: readonly string[]
  readonly templateIds: readonly string[]
}

/** Identifies what one pause of a sandbox kept. */
export interface PausedContent {
  readonly sandboxId: string
  /** Generation that was paused. */
  readonly keptGeneration: number
  /** Random ID of the pause. */
  readonly keptId: string
}
