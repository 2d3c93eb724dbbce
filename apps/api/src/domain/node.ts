import type { Reading } from './metrics.ts'
import type { Ingress, NetworkRules } from './network.ts'
import type { OnNode } from './sandbox-pause.ts'
import type { Resources } from './template.ts'

/** What the control plane asks of the node. */
export interface SandboxNode {
  describe(signal: AbortSignal): Promise<NodeFacts>
  measure(signal: AbortSignal): Promise<NodeUsage>
  envdVersion(signal: AbortSignal): Promise<string>
  /**
   * Returns once envd knows who it is. Faults: `sandbox_capacity_unavailable` when there is no room,
   * `snapshot_unreadable` when this node cannot go on from its snapshot, `ready_name_gone` when none stands ready under
   * its name, `sandbox_create_failed` for whatever else went wrong.
   */
  create(sandbox: NodeSandbox, signal: AbortSignal): Promise<void>
  /** Has the next sandbox that it makes ahead told who it will be. Returns once that stands ready, with what it is. */
  nameReady(id: string, accessToken: string, signal: AbortSignal): Promise<NodeShape>
  /**
   * Puts a running sandbox aside. Faults: `memory_not_kept` when it cannot be now, `disk_full`, `sandbox_not_found`,
   * `sandbox_pause_failed`. After a fault `find` tells what became of it. `sizeBytes` is what it takes on the disk; 0 when
   * the node cannot tell.
   */
  pause(
    id: string,
    keepMemory: boolean,
    signal: AbortSignal,
  ): Promise<{ readonly sizeBytes: number }>
  /**
   * Returns once envd answers. Faults: `sandbox_capacity_unavailable`, `sandbox_memory_lost` when only its files can be
   * brought back, `sandbox_not_found`, `sandbox_resume_failed`. After a fault `find` tells what became of it.
   */
  resume(sandbox: NodeResume, signal: AbortSignal): Promise<void>
  /** In force when it returns. Faults: `sandbox_not_found` when it does not run, `network_update_failed`. */
  updateNetwork(id: string, network: NetworkRules, signal: AbortSignal): Promise<void>
  /**
   * Copies a running sandbox, which goes on afterwards. Faults: `disk_full`, `sandbox_not_found`,
   * `sandbox_snapshot_failed`.
   */
  snapshot(
    id: string,
    snapshotId: string,
    signal: AbortSignal,
  ): Promise<{ readonly keepsMemory: boolean; readonly sizeBytes: number }>
  /** Succeeds also when there is none. */
  deleteSnapshot(snapshotId: string, signal: AbortSignal): Promise<void>
  listSnapshots(signal: AbortSignal): Promise<readonly string[]>
  /** Succeeds also when there is nothing to kill; afterwards nothing of the sandbox is left. */
  kill(id: string): Promise<void>
  find(id: string, signal: AbortSignal): Promise<OnNode>
  /** Running and paused ones, by id. */
  list(signal: AbortSignal): Promise<ReadonlyMap<string, NonNullable<OnNode>>>
  /** What each running sandbox uses; with an id, only that one, if it runs. */
  sample(signal: AbortSignal, id?: string): Promise<Reading[]>
  /** Ends of sandboxes as they happen, until the signal or a failure of the connection. */
  watchEnds(signal: AbortSignal): AsyncIterable<SandboxEnd>
}

/** Sandboxes of one shape can stand in for each other until they are used. */
export interface NodeShape extends Resources {
  readonly nodeTemplateId: string
}

export interface NodeSandbox {
  readonly id: string
  readonly nodeTemplateId: string
  /** It goes on from this copy instead of beginning anew. */
  readonly snapshotId: string | undefined
  readonly resources: Resources
  readonly envVars: Readonly<Record<string, string>>
  readonly accessToken: string | undefined
  readonly network: NetworkRules
  readonly ingress: Ingress
  /** Its id is one that `nameReady` gave: it is that sandbox or none. */
  readonly isNamed: boolean
}

export interface NodeResume {
  readonly id: string
  readonly accessToken: string | undefined
  readonly network: NetworkRules
  readonly ingress: Ingress
  /** From its files alone, also when its memory was kept. */
  readonly boot: boolean
}

export interface SandboxEnd {
  readonly id: string
  /** For people: "ran out of memory (limit 512 MB)". */
  readonly reason: string
}

/** What stays the same while its agent runs. */
export interface NodeFacts {
  readonly id: string
  /** Another one after each start of the agent. */
  readonly instanceId: string
  readonly version: string
  /** Whether its runtime keeps memory over a pause. */
  readonly keepsMemory: boolean
  readonly machine: {
    readonly cpuArchitecture: string
    readonly cpuFamily: string
    readonly cpuModel: string
    readonly cpuModelName: string
  }
}

/** What its machine has, uses and has promised. */
export interface NodeUsage {
  readonly sandboxCount: number
  readonly pausedCount: number
  /** Sandboxes that are started but nobody's yet. */
  readonly pools: readonly {
    readonly templateId: string
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
