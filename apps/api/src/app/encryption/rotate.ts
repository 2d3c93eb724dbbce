import type { Clock } from '@atoll/kit/clock'
import type { KeyRing } from '@atoll/kit/encryption/key-ring'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import type { LeaseStore } from '../../domain/lease.ts'

/** Seals private values with the current key. Values that no key opens are left as they are, and counted. */
export type ResealRecords = () => Promise<{
  readonly resealed: number
  readonly unreadable: number
}>

export interface Rotation {
  /** Returns when everything readable has the new key. An interrupted rotation is completed by the next call. */
  rotate(): Promise<RotationResult>
}

export interface RotationResult {
  readonly currentKeyId: string
  /** False: an earlier rotation was interrupted, and this one completed it. */
  readonly isNewKey: boolean
  /** Records that were encrypted again. */
  readonly resealed: number
  /** Records that could not be read. Their keys are kept. */
  readonly unreadable: number
  readonly droppedKeyIds: readonly string[]
  /** Older keys that are still in the key file. */
  readonly keptKeyIds: readonly string[]
}

/**
 * Replaces the encryption key while sandboxes run. The new key is on disk before it is used, and the old one is dropped when
 * no record needs it, so a crash at any point leaves every record readable.
 */
export function createRotation(ports: {
  readonly keyRing: KeyRing
  /** The store and the node, which keep sealed values. */
  readonly holders: readonly ResealRecords[]
  readonly leases: Pick<LeaseStore, 'listLive'>
  readonly processId: string
  readonly clock: Clock
  readonly log: Logger
}): Rotation {
  const { keyRing, log } = ports
  let isUnderway = false

  async function rotate(): Promise<RotationResult> {
    await checkAlone(ports)
    const isNewKey = keyRing.keyIds.length === 1
    if (isNewKey) await keyRing.add()
    const [currentKeyId = '', ...older] = keyRing.keyIds
    // Every later write uses the new key, and the pass below sees all earlier writes.
    await keyRing.settled()
    const count = { resealed: 0, unreadable: 0 }
    for (const reseal of ports.holders) {
      const { resealed, unreadable } = await reseal()
      count.resealed += resealed
      count.unreadable += unreadable
    }
    const isDone = count.unreadable === 0
    if (isDone) await keyRing.dropOlder()
    log.info({ event: 'encryption.rotate', currentKeyId, older, isNewKey, ...count })
    return {
      ...{ currentKeyId, isNewKey, ...count },
      droppedKeyIds: isDone ? older : [],
      keptKeyIds: isDone ? [] : older,
    }
  }

  return {
    async rotate() {
      if (isUnderway) throw beingRotated()
      isUnderway = true
      try {
        return await rotate()
      } finally {
        isUnderway = false
      }
    },
  }
}

/** Other servers on the database would not know the new key. */
async function checkAlone(ports: {
  readonly leases: Pick<LeaseStore, 'listLive'>
  readonly processId: string
  readonly clock: Clock
}): Promise<void> {
  const live = await ports.leases.listLive(ports.clock.now())
  const others = live.filter(({ processId }) => processId !== ports.processId).length
  if (others === 0) return
  throw new Fault(
    'conflict',
    'encryption_several_servers',
    `The key was not changed: ${others} other servers use the database, and would not know a new key. Stop them, rotate the key, copy the key file to them and start them again.`,
  )
}

function beingRotated(): Fault {
  return new Fault(
    'conflict',
    'encryption_being_rotated',
    'The encryption key is being replaced by another request. Wait until that is finished.',
  )
}
