/** Snapshots or templates that a node has. */
export interface FilesOnNode {
  readonly ids: readonly string[]
  /** IDs that are in the object store too. */
  readonly durableIds: readonly string[]
}

/** Returns the IDs that the node has and the object store does not. */
export function notUploaded({ ids, durableIds }: FilesOnNode): string[] {
  const durable = new Set(durableIds)
  return ids.filter((id) => !durable.has(id))
}
