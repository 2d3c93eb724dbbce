import type { FilesOnNode } from './files-on-node.ts'
import type { BuildNode } from './builds/build-node.ts'
import type { CatalogueNode } from './catalogue.ts'
import type { ConnectionNode } from './network/connections.ts'
import type { ChangeNode } from './file-changes.ts'
import type { LogNode } from './log.ts'
import type { Reading } from './metrics.ts'
import type { Ingress, NetworkRules } from '@atoll/contracts/network/rules'
import type { OnNode } from './sandboxes/sandbox-pause.ts'
import type { Resources } from './template.ts'
import type { Uploaded } from './uploaded.ts'

/**
 * A sandbox with the generation that a call is meant for. The node refuses the call with a `sandbox_superseded` fault if
 * it has a newer one.
 */
export interface SandboxRef {
  readonly id: string
  readonly generation: number
}

/** Operations of one node that sandboxes need. */
export interface SandboxNode {
  describe(signal: AbortSignal): Promise<NodeFacts>
  measure(signal: AbortSignal): Promise<NodeUsage>
  envdVersion(signal: AbortSignal): Promise<string>
  /**
   * Returns once envd has its identity. Faults: `sandbox_capacity_unavailable` when the node is full,
   * `snapshot_unreadable` when this node cannot restore the snapshot, `ready_name_gone` when the pre-named sandbox no
   * longer exists, `sandbox_create_failed` for all other errors.
   */
  create(sandbox: NodeSandbox, signal: AbortSignal): Promise<void>
  /** Assigns this ID and token to the next pre-warmed sandbox. Returns the shape of the sandbox once it is ready. */
  nameReady(id: string, accessToken: string, signal: AbortSignal): Promise<NodeShape>
  /**
   * Pauses a running sandbox. Faults: `memory_not_kept` when the memory cannot be saved now, `disk_full`,
   * `sandbox_not_found`, `sandbox_pause_failed`. After a fault, call `find` for the actual state. `sizeBytes` is the
   * size on disk; 0 if the node cannot measure it. `keptId` is the random ID of the pause; undefined if it has none, and from a node
   * of an older release.
   */
  pause(
    sandbox: SandboxRef,
    keepMemory: boolean,
    signal: AbortSignal,
  ): Promise<{ readonly sizeBytes: number; readonly keptId: string | undefined }>
  /**
   * Returns once envd responds. Faults: `sandbox_capacity_unavailable`, `sandbox_memory_lost` when only the files can
   * be restored, `sandbox_evicted` when the files are in the object store only, `sandbox_not_found`,
   * `sandbox_resume_failed`. After a fault, call `find` for the actual state.
   */
  resume(sandbox: NodeResume, signal: AbortSignal): Promise<void>
  /**
   * Fetches the content of a paused sandbox from the object store and keeps it paused. Returns after some seconds at the
   * latest; while `isUnderway`, call again. Faults: `node_unsuitable` when this node cannot restore it,
   * `objects_unavailable`, `sandbox_content_missing` when the store does not have it, `disk_full`.
   */
  fetch(sandbox: NodeFetch, signal: AbortSignal): Promise<FetchProgress>
  /**
   * Returns once the rules are in force. Faults: `sandbox_not_found` when the sandbox does not run,
   * `network_update_failed`.
   */
  updateNetwork(sandbox: SandboxRef, network: NetworkRules, signal: AbortSignal): Promise<void>
  /**
   * Takes a snapshot of a running sandbox, which keeps running afterwards. With `copies`, that many sandboxes follow at
   * once, and the snapshot does not outlive the node agent. Faults: `disk_full`, `sandbox_not_found`,
   * `sandbox_snapshot_failed`.
   */
  snapshot(
    sandbox: SandboxRef,
    snapshot: { readonly id: string; readonly copies: number },
    signal: AbortSignal,
  ): Promise<{ readonly keepsMemory: boolean; readonly sizeBytes: number }>
  /** Deletes it from the object store too. Succeeds also when the snapshot does not exist. */
  deleteSnapshot(snapshotId: string, signal: AbortSignal): Promise<void>
  listSnapshots(signal: AbortSignal): Promise<FilesOnNode>
  /**
   * Deletes everything of the sandbox on this node, and in the object store if the sandbox has ended everywhere. Succeeds
   * also when the sandbox does not exist.
   */
  kill(sandbox: SandboxRef & { readonly isElsewhere?: boolean }): Promise<void>
  /**
   * Deletes the objects of sandboxes that have ended, up to these generations, some time after it returns. Skips sandboxes
   * that this node has. For nodes with an object store only.
   */
  deleteObjects(sandboxes: readonly SandboxRef[], signal: AbortSignal): Promise<void>
  /**
   * Returns those of these contents that the object store has, whichever node uploaded them. For nodes with an object store only, and
   * for at most 200 contents. Undefined: the node is of a release that cannot be asked. Fault: `objects_unavailable`.
   */
  findStored(wanted: Uploaded, signal: AbortSignal): Promise<Uploaded | undefined>
  find(id: string, signal: AbortSignal): Promise<OnNode>
  /** Lists running, paused and quarantined sandboxes by ID. */
  list(signal: AbortSignal): Promise<ReadonlyMap<string, NonNullable<OnNode>>>
  /** Reads the usage of all running sandboxes, or only of `id` if it runs. */
  sample(signal: AbortSignal, id?: string): Promise<Reading[]>
  /** Streams sandbox ends as they happen, until the signal aborts or the connection fails. */
  watchEnds(signal: AbortSignal): AsyncIterable<SandboxEnd>
}

/** Connection to one node, whichever answers at the other end. */
export interface NodeLink {
  /** ID by the certificate of the node. Undefined: the node says its ID when it first answers. */
  readonly id?: string
  describe(signal: AbortSignal): Promise<NodeFacts>
  /** Sends all later operations to this agent only; any other one refuses them. They fail before the first call. */
  address(agent: Pick<NodeFacts, 'id' | 'epoch'>): void
  readonly sandboxes: SandboxNode
  readonly builds: BuildNode
  readonly catalogue: CatalogueNode
  readonly logs: LogNode
  readonly changes: ChangeNode
  readonly connections: ConnectionNode
}

/** Unused sandboxes of the same shape are interchangeable. */
export interface NodeShape extends Resources {
  readonly nodeTemplateId: string
}

export interface NodeSandbox extends SandboxRef {
  readonly nodeTemplateId: string
  /** Snapshot to restore from; undefined starts a new sandbox. */
  readonly snapshotId: string | undefined
  readonly resources: Resources
  readonly envVars: Readonly<Record<string, string>>
  readonly accessToken: string | undefined
  readonly network: NetworkRules
  readonly ingress: Ingress
  /** The ID was assigned by `nameReady`: claims that pre-warmed sandbox or fails. */
  readonly isNamed: boolean
}

/** The generation is the new one. */
export interface NodeResume extends SandboxRef {
  readonly accessToken: string | undefined
  readonly network: NetworkRules
  readonly ingress: Ingress
  /** Boots from the files, even if the memory was saved. */
  readonly boot: boolean
  /** Content that the object store has. A node with older content does not resume it. */
  readonly keptGeneration?: number | undefined
}

/** The generation is the new one. */
export interface NodeFetch extends SandboxRef {
  /** Content to fetch: the generation that was paused, and the ID of the pause. */
  readonly keptGeneration: number
  readonly keptId: string | undefined
  /** The memory is not needed. */
  readonly boot: boolean
}

export interface FetchProgress {
  readonly isUnderway: boolean
  /** Grows as long as the node receives anything from the object store. */
  readonly receivedBytes: number
}

export interface SandboxEnd extends SandboxRef {
  /** Human-readable, such as "ran out of memory (limit 512 MB)". */
  readonly reason: string
}

/** Properties that do not change while the node agent runs. */
export interface NodeFacts {
  readonly id: string
  /** Number of starts of the agent on the data of the node. */
  readonly epoch: number
  /** New after each start of the agent. */
  readonly instanceId: string
  readonly version: string
  /** Version of envd in sandboxes that this agent boots. */
  readonly envdVersion: string
  /** Whether a pause under the runtime of the node keeps the memory. */
  readonly keepsMemory: boolean
  /** Saved memory can be restored in this format only. Empty if not known. */
  readonly memoryFormat: string
  /** Saved memory needs all features of the CPU that saved it. Empty if not known. */
  readonly cpuFeatures: readonly string[]
  /** Whether the node has an object store, from which it can fetch what other nodes saved. */
  readonly hasObjects: boolean
  readonly machine: {
    readonly cpuArchitecture: string
    readonly cpuFamily: string
    readonly cpuModel: string
    readonly cpuModelName: string
  }
}

/** Capacity, usage and allocation of the machine. */
export interface NodeUsage {
  readonly sandboxCount: number
  readonly pausedCount: number
  /** Warm pools: unclaimed pre-warmed sandboxes. */
  readonly pools: readonly {
    readonly templateId: string
    readonly ready: number
    readonly target: number
  }[]
  readonly snapshotPools: readonly {
    readonly snapshotId: string
    readonly ready: number
    readonly target: number
  }[]
  readonly allocatedCpuCount: number
  readonly allocatedMemoryBytes: number
  readonly cpuCount: number
  readonly cpuPercent: number
  readonly memoryTotalBytes: number
  readonly memoryUsedBytes: number
  readonly hugePages: {
    readonly total: number
    readonly used: number
    readonly reserved: number
    readonly pageSizeBytes: number
  }
  readonly disks: readonly {
    readonly mountPoint: string
    readonly device: string
    readonly fileSystem: string
    readonly usedBytes: number
    readonly totalBytes: number
  }[]
}
