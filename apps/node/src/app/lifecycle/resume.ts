import type { Owner } from '../../domain/sandboxes/cell.ts'
import { withAuthority } from '../../domain/network/network-rules.ts'
import type { Authority, Ingress, NetworkRules } from '@atoll/contracts/network/rules'
import type { PausedSandbox, RunningSandbox } from '../../domain/sandboxes/sandbox.ts'
import { createBootPaused } from './boot-paused.ts'
import type { BootPorts } from './boot-paused.ts'
import type { Cells } from './cells.ts'
import type { Claim, ClaimRequest } from './claim.ts'
import type { SlotPool } from '../pools/slot-pool.ts'
import { checkReadable } from './check-readable.ts'
import { createRestorePaused } from './restore-paused.ts'
import type { RestorePorts } from './restore-paused.ts'
import type { Releases } from './releases.ts'
import type { Runtime } from '../../domain/sandboxes/runtime.ts'
import type { SupersededCells } from './superseded-cells.ts'

export interface ResumeRequest extends ClaimRequest {
  readonly sandboxId: string
  /** Boot from the files, without restoring memory. */
  readonly boot: boolean
  /** New generation of the sandbox. Absent: unchanged. */
  readonly generation?: number
  /** Content that the object store has: older content of this node must not be resumed. Absent: any content. */
  readonly keptGeneration?: number
  readonly network?: NetworkRules
  readonly ingress?: Ingress
}

export interface ResumePorts extends RestorePorts, BootPorts {
  readonly runtime: Runtime
  createAuthority(): Authority
}

/** Resumes a paused sandbox. A failure leaves the sandbox paused, with all its state. */
export type Resume = (paused: PausedSandbox, request: ResumeRequest) => Promise<RunningSandbox>

export function createResume(parts: {
  readonly ports: ResumePorts
  readonly cells: Cells
  readonly slots: SlotPool
  readonly claim: Claim
  readonly superseded: Pick<SupersededCells, 'retire'>
  readonly releases: Pick<Releases, 'finished'>
}): Resume {
  const { ports } = parts
  const restore = createRestorePaused(parts)
  const boot = createBootPaused(parts)

  /** Returns the owner of the resumed sandbox, with the settings of the request. */
  function ownerFor({ owner }: PausedSandbox, request: ResumeRequest): Owner {
    const { ingress = owner.ingress } = request
    const { network, ...trusted } = withAuthority(
      request.network ?? owner.network,
      owner.authority,
      ports.createAuthority,
    )
    const policy = { ...(network && { network }), ...(ingress && { ingress }) }
    return { ...owner, ...policy, ...trusted }
  }

  return async (paused, request) => {
    const restoresMemory = paused.memory !== undefined && !request.boot
    const needed = restoresMemory ? paused : { runtime: paused.runtime }
    await checkReadable(
      ports.runtime,
      needed,
      ': connect with memory: false to boot from its files',
    )
    const owner = ownerFor(paused, request)
    return restoresMemory ? restore(paused, owner, request) : boot(paused, owner, request)
  }
}
