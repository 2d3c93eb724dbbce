import type {
  Ingress,
  IngressSchema,
  NetworkRules,
} from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { reasonHeader, staleGeneration } from '@atoll/contracts/node-faults'
import type { MessageInitShape } from '@bufbuild/protobuf'
import { Code, ConnectError } from '@connectrpc/connect'
import type { createEvents } from './events.ts'
import type { FailureInjector } from './failure-injector.ts'

/** Sandboxes and snapshots of a simulated node, shared by the parts of the simulation. */
export interface NodeState {
  /** Ordered by creation. */
  readonly running: Map<string, SimulatedSandbox>
  readonly paused: Map<string, PausedSandbox>
  readonly snapshots: Map<string, SimulatedSnapshot>
  readonly events: ReturnType<typeof createEvents>
  readonly failures: FailureInjector
  /** Undefined: the node has no object store. */
  readonly objects: SimulatedObjects | undefined
  /** IDs of snapshots and built templates that the object store has. */
  readonly durableFiles: Set<string>
  /** Returns the address for a new or resumed sandbox. */
  newAddress(): string
}

/** Object store that several simulated nodes share: paused sandboxes by ID and paused generation, and what is beside them. */
export interface SimulatedObjects extends Map<string, PausedSandbox> {
  /** Logs of sandboxes that ended or were paused, by ID. */
  readonly logs: Map<string, readonly SimulatedEntry[]>
  /** Files for build steps, keyed by `owner/hash`. */
  readonly buildFiles: Map<string, Buffer>
  /** Snapshots by ID, which a create fetches. */
  readonly snapshots: Map<string, SimulatedSnapshot>
  /** IDs of built templates, which a create fetches. */
  readonly templates: Set<string>
  /** Makes all but pauses fail: uploads of logs and build files get lost, and reads fail. */
  isDown: boolean
}

export interface SimulatedEntry {
  readonly at: number
  readonly level?: 'debug' | 'info' | 'warn' | 'error'
  readonly message: string
  readonly fields?: Readonly<Record<string, string>>
}

export interface SimulatedSandbox {
  readonly address: string
  /** A pause is in progress. */
  readonly isPausing?: boolean
  readonly templateId: string
  readonly cpuCount: number
  readonly memoryMb: number
  readonly diskSizeMb: number
  readonly envVars: Readonly<Record<string, string>>
  readonly accessToken: string | undefined
  readonly network?: NetworkRules | undefined
  readonly ingress?: Ingress | undefined
  /** Snapshot that the sandbox was restored from. */
  readonly snapshotId?: string | undefined
  /** Number of boots; a resume with memory does not count. */
  readonly boots: number
  readonly generation: number
}

export type SimulatedIngress = MessageInitShape<typeof IngressSchema>

export type SimulatedShape = Pick<
  SimulatedSandbox,
  'templateId' | 'cpuCount' | 'memoryMb' | 'diskSizeMb'
>

export interface PausedSandbox extends SimulatedSandbox {
  readonly keepsMemory: boolean
  /** Generation that was paused. */
  readonly keptGeneration?: number
  /** Random ID of the pause. */
  readonly keptId?: string
  /** The node cannot read the record of the sandbox. */
  readonly isQuarantined?: boolean
  /** The files are in the object store only. */
  readonly isEvicted?: boolean
}

export interface SimulatedSnapshot extends PausedSandbox {
  readonly sandboxId: string
}

/** Throws when the sandbox has a newer generation. */
export function checkGeneration(
  { running, paused }: Pick<NodeState, 'running' | 'paused'>,
  request: { readonly sandboxId: string; readonly generation: number },
): void {
  const { sandboxId, generation } = request
  const newest = (running.get(sandboxId) ?? paused.get(sandboxId))?.generation ?? 0
  if (generation < newest) throw refused(`generation ${newest}`, staleGeneration)
}

export function refused(message: string, reason: string): ConnectError {
  return new ConnectError(message, Code.FailedPrecondition, { [reasonHeader]: reason })
}

export function notFound(): ConnectError {
  return new ConnectError('absent', Code.NotFound)
}
