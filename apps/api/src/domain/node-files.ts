/** Records of snapshots and built templates, by the node that has their files. */
export interface NodeFileStore {
  /** Lists up to `limit` builds whose files only this node has, as far as the database knows. */
  listLost(nodeId: string, limit: number): Promise<LostBuild[]>
  /**
   * Fails those of these builds whose files only this node had, and deletes the records of their snapshots. Returns how many
   * snapshots and built templates that were.
   */
  failLost(nodeId: string, buildIds: readonly string[], now: Date): Promise<LostFiles>
  /**
   * Assigns the remaining snapshots and built templates to another node. With an object store it fetches them when they are needed,
   * and deletes their objects with their records. Without one it takes over `unpublished` snapshots, and deletes their records.
   */
  handOver(nodeId: string, toNodeId: string, what: 'all' | 'unpublished'): Promise<void>
}

export interface LostBuild {
  readonly buildId: string
  readonly nodeTemplateId: string
  /** Snapshot that is the content of the build. Undefined: the build is a template. */
  readonly snapshotId: string | undefined
}

export interface LostFiles {
  readonly snapshots: number
  readonly templates: number
}
