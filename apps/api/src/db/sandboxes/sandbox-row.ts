import type { KeyRing, SealingWrite } from '@atoll/kit/encryption/key-ring'
import type {
  Kept,
  Sandbox,
  SandboxMove,
  SandboxParent,
  SandboxState,
} from '../../domain/sandboxes/sandbox.ts'
import { sandboxStates } from '../../domain/sandboxes/sandbox.ts'
import type { SandboxNetwork } from '../../domain/network/network.ts'
import { hasPrivateValues, openNetwork, sealNetwork } from '../encryption/network-values.ts'
import { fromNetworkText, toNetworkText } from '../migrations/network-columns.ts'
import type { SandboxRow } from '../schema.ts'

export function toRow(sandbox: Sandbox, write: SealingWrite): SandboxRow {
  return {
    id: sandbox.id,
    team_id: sandbox.teamId,
    template_id: sandbox.templateId,
    build_id: sandbox.buildId,
    alias: sandbox.alias ?? null,
    state: sandbox.state,
    cpu_count: sandbox.resources.cpuCount,
    memory_mb: sandbox.resources.memoryMb,
    disk_size_mb: sandbox.resources.diskSizeMb,
    has_metadata: sandbox.metadata ? 1 : 0,
    secure: sandbox.secure ? 1 : 0,
    allow_internet_access:
      sandbox.allowInternetAccess === undefined ? null : Number(sandbox.allowInternetAccess),
    network: toNetworkText(toSealed(sandbox, write)),
    created_at: sandbox.createdAt.getTime(),
    holder: sandbox.holder ?? null,
    network_holder: sandbox.networkHolder ?? null,
    envd_version: sandbox.envdVersion ?? null,
    started_at: sandbox.startedAt?.getTime() ?? null,
    end_at: sandbox.endAt?.getTime() ?? null,
    kept: sandbox.kept ?? null,
    kept_bytes: sandbox.keptBytes ?? null,
    kill_requested: Number(sandbox.isKillRequested ?? false),
    end_reason: sandbox.endReason ?? null,
    ended_at: sandbox.endedAt?.getTime() ?? null,
    auto_pause: Number(sandbox.lifecycle.autoPause),
    auto_pause_memory: Number(sandbox.lifecycle.autoPauseMemory),
    auto_resume: Number(sandbox.lifecycle.autoResume),
    timeout_seconds: sandbox.timeoutSeconds ?? null,
    node_id: sandbox.nodeId === '' ? null : sandbox.nodeId,
    generation: sandbox.generation,
    ...toContentColumns(sandbox),
    stored_generation: sandbox.storedGeneration ?? null,
    parent_id: sandbox.parent?.id ?? null,
    parent_kind: sandbox.parent?.kind ?? null,
    ...toMoveColumns(sandbox.move),
  }
}

type ContentColumns = Pick<
  SandboxRow,
  'kept_end_at' | 'kept_generation' | 'kept_id' | 'durable_generation'
>

function toContentColumns(sandbox: Sandbox): ContentColumns {
  return {
    kept_end_at: sandbox.endAt?.getTime() ?? null,
    kept_generation: sandbox.keptGeneration ?? null,
    kept_id: sandbox.keptId ?? null,
    durable_generation: sandbox.durableGeneration ?? null,
  }
}

/**
 * Returns the name of the kept content. If an older release has paused the sandbox since the columns were written, the name is
 * unknown until the node is asked.
 */
export function toContent(
  row: ContentColumns & Pick<SandboxRow, 'end_at'>,
): Pick<Sandbox, 'keptGeneration' | 'keptId' | 'durableGeneration'> {
  const isOutdated = row.kept_end_at !== row.end_at
  return {
    keptGeneration: isOutdated ? undefined : (row.kept_generation ?? undefined),
    keptId: isOutdated ? undefined : (row.kept_id ?? undefined),
    durableGeneration: isOutdated ? undefined : (row.durable_generation ?? undefined),
  }
}

function toMoveColumns(move: SandboxMove | undefined): MoveColumns {
  return {
    move_generation: move?.generation ?? null,
    move_end_at: move?.kind === 'underway' ? move.endAt.getTime() : null,
    move_problem: move?.kind === 'failed' ? move.problem : null,
    move_retry_at: move?.retryAt?.getTime() ?? null,
  }
}

type MoveColumns = Pick<
  SandboxRow,
  'move_generation' | 'move_end_at' | 'move_problem' | 'move_retry_at'
>

export function toMove(row: MoveColumns): SandboxMove | undefined {
  const { move_generation: generation, move_end_at: endAt, move_problem: problem } = row
  if (generation === null) return undefined
  const retryAt = toDate(row.move_retry_at)
  if (endAt !== null) return { kind: 'underway', generation, retryAt, endAt: new Date(endAt) }
  return problem === null ? undefined : { kind: 'failed', generation, retryAt, problem }
}

export function fromRow(
  row: SandboxRow,
  metadata: Record<string, string>,
  keyRing: KeyRing,
): Sandbox {
  return {
    id: row.id,
    teamId: row.team_id,
    templateId: row.template_id,
    buildId: row.build_id,
    alias: row.alias ?? undefined,
    parent: toParent(row),
    state: toState(row.state),
    resources: {
      cpuCount: row.cpu_count,
      memoryMb: row.memory_mb,
      diskSizeMb: row.disk_size_mb,
    },
    metadata: row.has_metadata ? metadata : undefined,
    secure: row.secure === 1,
    allowInternetAccess:
      row.allow_internet_access === null ? undefined : row.allow_internet_access === 1,
    network: readNetwork(row, keyRing),
    createdAt: new Date(row.created_at),
    holder: row.holder ?? undefined,
    networkHolder: row.network_holder ?? undefined,
    envdVersion: row.envd_version ?? undefined,
    startedAt: toDate(row.started_at),
    endAt: toDate(row.end_at),
    kept: toKept(row.kept),
    keptBytes: row.kept_bytes ?? undefined,
    isKillRequested: row.kill_requested === 1,
    endReason: row.end_reason ?? undefined,
    endedAt: toDate(row.ended_at),
    lifecycle: {
      autoPause: row.auto_pause === 1,
      autoPauseMemory: row.auto_pause_memory === 1,
      autoResume: row.auto_resume === 1,
    },
    timeoutSeconds: row.timeout_seconds ?? undefined,
    nodeId: row.node_id ?? '',
    generation: row.generation,
    ...toContent(row),
    move: toMove(row),
    storedGeneration: row.stored_generation ?? undefined,
  }
}

function toSealed({ id, network }: Sandbox, write: SealingWrite): SandboxNetwork | undefined {
  return network && hasPrivateValues(network) ? sealNetwork(id, network, write) : network
}

/** Values that cannot be opened stay sealed. */
export function readNetwork(
  { id, network: text }: Pick<SandboxRow, 'id' | 'network'>,
  keyRing: KeyRing,
): SandboxNetwork | undefined {
  const network = fromNetworkText(text)
  return network && hasPrivateValues(network) ? openNetwork(id, network, keyRing) : network
}

export function toState(text: string): SandboxState {
  const state = sandboxStates.find((known) => known === text)
  if (state) return state
  throw new Error(`the store holds a sandbox in the unknown state ${text}`)
}

export function toParent({
  parent_id: id,
  parent_kind: kind,
}: Pick<SandboxRow, 'parent_id' | 'parent_kind'>): SandboxParent | undefined {
  return id === null ? undefined : { id, kind: kind === 'snapshot' ? 'snapshot' : 'fork' }
}

function toKept(text: string | null): Kept | undefined {
  return text === 'memory' || text === 'files' ? text : undefined
}

function toDate(time: number | null): Date | undefined {
  return time === null ? undefined : new Date(time)
}
