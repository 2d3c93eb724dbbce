import { Fault } from '@atoll/kit/fault'
import type { Cell, CellRecord, Owner, Shape } from '../../domain/sandboxes/cell.ts'
import { checkId, shapeKey } from '../../domain/sandboxes/cell.ts'
import { withAuthority } from '../../domain/network/network-rules.ts'
import type { Authority } from '@atoll/contracts/network/rules'
import type { Runtime } from '../../domain/sandboxes/runtime.ts'
import type { RunningSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { Snapshot, SnapshotStore } from '../../domain/sandboxes/snapshot.ts'
import type { WarmPools } from '../pools/warm-pools.ts'
import type { Cells } from './cells.ts'
import { checkReadable } from './check-readable.ts'
import type { Claim, ClaimRequest } from './claim.ts'

export interface CreateRequest extends ClaimRequest {
  readonly shape: Shape
  readonly owner: Owner
  readonly snapshotId?: string | undefined
  /** Claims only a pre-named sandbox. Such a request cannot have variables, a snapshot or header rules. */
  readonly isNamed?: boolean
}

export interface CreatePorts {
  readonly records: { update(record: CellRecord): Promise<void> }
  readonly runtime: Runtime
  readonly snapshots: SnapshotStore
  createAuthority(): Authority
}

export type CreateSandbox = (request: CreateRequest) => Promise<RunningSandbox>

/** Claims a cell for a new sandbox. A failure erases the cell. */
export function createCreateSandbox(parts: {
  readonly ports: CreatePorts
  readonly cells: Pick<Cells, 'erase'>
  readonly pools: Pick<WarmPools, 'take' | 'takePreassigned'>
  readonly claim: Claim
}): CreateSandbox {
  const { ports, cells, pools, claim } = parts
  const { records, runtime, snapshots } = ports

  async function createFromAnyCell(request: CreateRequest): Promise<RunningSandbox> {
    const { signal, snapshotId } = request
    const from =
      snapshotId === undefined ? undefined : await findSnapshot(snapshotId, request.shape)
    const { network, ...trusted } = withAuthority(
      request.owner.network,
      from?.snapshot.authority,
      ports.createAuthority,
    )
    const cell = await pools.take({ shape: request.shape, from, network, signal, ...pooled(from) })
    // A copy keeps the variables of the original, which are in its memory, unless the request has others.
    const hasVariables = Object.keys(request.owner.envVars).length > 0
    const envVars = hasVariables || !from ? request.owner.envVars : from.snapshot.envVars
    const owner = { ...request.owner, envVars, ...(network && { network }), ...trusted }
    return claimOrErase(cell, async () => {
      await records.update({ ...cell.record, phase: 'making', owner })
      return claim.assignAndStart({ ...cell, record: { ...cell.record, owner } }, request)
    })
  }

  /** Claims the pre-warmed cell that already has this identity. */
  async function createFromPreassigned(request: CreateRequest): Promise<RunningSandbox> {
    const { shape, owner, accessToken, signal } = request
    const { sandboxId, network } = owner
    const cell = await pools.takePreassigned({ shape, network }, { sandboxId, accessToken })
    if (!cell) {
      throw new Fault(
        'conflict',
        'name_gone',
        `No pre-warmed sandbox has the identity ${sandboxId}; create the sandbox without isNamed`,
      )
    }
    const owned = { ...cell, record: { ...cell.record, owner } }
    return claimOrErase(cell, () => claim.startPreassigned(owned, signal))
  }

  /** Snapshots of forks are gone soon, and one without memory would run its start command without a network. */
  function pooled(from: { readonly snapshot: Snapshot } | undefined) {
    if (from?.snapshot.memory === undefined) return {}
    const { snapshotId } = from.snapshot
    return snapshots.isTemporary(snapshotId) ? {} : { snapshotId }
  }

  async function claimOrErase(
    cell: Cell,
    claimCell: () => Promise<RunningSandbox>,
  ): Promise<RunningSandbox> {
    try {
      return await claimCell()
    } catch (error) {
      // Rethrow the original error; cleanup errors are secondary.
      await cells.erase(cell).catch(() => {})
      throw error
    }
  }

  async function findSnapshot(snapshotId: string, shape: Shape) {
    checkId(snapshotId)
    const snapshot = await snapshots.find(snapshotId)
    if (!snapshot) {
      throw new Fault(
        'not_found',
        'snapshot_not_found',
        `Snapshot ${snapshotId} does not exist on this node`,
      )
    }
    if (shapeKey(snapshot) !== shapeKey(shape)) {
      throw new Fault(
        'invalid',
        'snapshot_size_differs',
        `Snapshot ${snapshotId} has the template and size ${shapeKey(snapshot)}, but the request has ${shapeKey(shape)}`,
      )
    }
    await checkReadable(runtime, snapshot)
    return { snapshot, ...snapshots.place(snapshotId) }
  }

  return (request) => (request.isNamed ? createFromPreassigned : createFromAnyCell)(request)
}

/** Throws a fault when a request for a pre-named sandbox contains what its envd does not know yet. */
export function checkPreassignable({ snapshotId, owner }: CreateRequest): void {
  const hasVariables = Object.keys(owner.envVars).length > 0
  if (snapshotId === undefined && !hasVariables && !owner.network?.transforms) return
  throw new Fault(
    'invalid',
    'name_says_more',
    'A pre-named sandbox cannot take envVars, a snapshot or header rules',
  )
}
