/** Snapshots or templates that a node has. */
export interface FilesOnNode {
  readonly ids: readonly string[]
  /** IDs that are in the object store too. */
  readonly durableIds: readonly string[]
}
