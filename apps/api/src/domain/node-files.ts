/** Records of snapshots and built templates, by the node that has their files. */
export interface NodeFileStore {
  /**
   * Fails up to `limit` builds whose files only this node had, and deletes the records of their snapshots. Returns how many
   * snapshots and built templates that were; fewer than `limit` in all: none is left.
   */
  failLost(nodeId: string, limit: number, now: Date): Promise<LostFiles>
  /**
   * Assigns the remaining snapshots and built templates to another node. With an object store it fetches them when they are needed,
   * and deletes their objects with their records. Without one it takes over `unpublished` snapshots, and deletes their records.
   */
  handOver(nodeId: string, toNodeId: string, what: 'all' | 'unpublished'): Promise<void>
}

export interface LostFiles {
  readonly snapshots: number
  readonly templates: number
}
