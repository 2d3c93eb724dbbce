import type { Reading } from './metrics.ts'
import type { Resources } from './template.ts'

/** What the control plane asks of the node. */
export interface SandboxNode {
  describe(signal: AbortSignal): Promise<NodeFacts>
  measure(signal: AbortSignal): Promise<NodeUsage>
  envdVersion(signal: AbortSignal): Promise<string>
  /**
   * Returns once envd answers. Faults: `sandbox_capacity_unavailable` when there is no room,
   * `sandbox_create_failed` for whatever else went wrong.
   */
  create(sandbox: NodeSandbox, signal: AbortSignal): Promise<void>
  /** Succeeds also when there is nothing to kill; afterwards nothing of the sandbox is left. */
  kill(id: string): Promise<void>
  list(signal: AbortSignal): Promise<string[]>
  /** What each running sandbox uses. */
  sample(signal: AbortSignal): Promise<Reading[]>
  /** Ends of sandboxes as they happen, until the signal or a failure of the connection. */
  watchEnds(signal: AbortSignal): AsyncIterable<SandboxEnd>
}

export interface NodeSandbox {
  readonly id: string
  readonly nodeTemplateId: string
  readonly resources: Resources
  readonly envVars: Readonly<Record<string, string>>
  readonly accessToken: string | undefined
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
