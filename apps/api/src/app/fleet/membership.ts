/**
 * Lets edges and nodes join and leave the fleet. Threats: a token may be stolen, so it works once and for an hour; a member
 * may be stolen, so it can be removed, and a new member never gets the ID of another one.
 */
import { createHash } from 'node:crypto'
import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { randomHex } from '@atoll/kit/id'
import type { FleetMember, FleetStore, JoinOutcome, MemberRole } from '../../domain/fleet-member.ts'

export interface Membership {
  /** Returns the secret of a new token and when it expires. */
  createToken(role: MemberRole): Promise<{ readonly secret: string; readonly expiresAt: Date }>
  /** Lets the holder of this secret join once, within an hour. A secret that was used stays used. */
  allowOnce(secret: string, role: MemberRole): Promise<void>
  /** Adds a member. Returns its ID. Throws a fault when the token or the ID is refused. */
  join(request: JoinRequest): Promise<string>
  /** Throws a `forbidden` fault unless the ID belongs to a member. Notes calls of edges. */
  check(member: { readonly role: string; readonly id: string }): Promise<void>
  /** Leaves out edges that have been silent for a day: pods end without being removed. */
  list(): Promise<FleetMember[]>
  remove(id: string): Promise<void>
  /** Lists members whose certificates must be refused although they may still be valid. */
  listRemoved(): Promise<string[]>
}

export interface JoinRequest {
  readonly secret: string
  readonly role: MemberRole
  /** ID of a node. Edges have none yet. */
  readonly id: string | undefined
}

const tokenMs = 60 * 60 * 1000
/** A day, the lifetime of certificates, and time for clocks that differ. */
const certificateMs = 25 * 60 * 60 * 1000
/** Edges call every few seconds, and a day is judged by this time. */
const noteIntervalMs = 10 * 60 * 1000

export function createMembership(deps: {
  readonly store: FleetStore
  readonly clock: Clock
}): Membership {
  const { store, clock } = deps
  const certificatesSince = () => new Date(clock.now().getTime() - certificateMs)
  const allow = async (secret: string, role: MemberRole): Promise<Date> => {
    const now = clock.now()
    const expiresAt = new Date(now.getTime() + tokenMs)
    await store.insertToken({ hash: hashOf(secret), role, expiresAt }, now)
    return expiresAt
  }
  const notedAt = new Map<string, number>()
  const noteCall = async ({ id, role }: FleetMember): Promise<void> => {
    const now = clock.now()
    const isRecent = now.getTime() - (notedAt.get(id) ?? 0) < noteIntervalMs
    if (role !== 'edge' || isRecent) return
    await store.noteEdge(id, now)
    notedAt.set(id, now.getTime())
  }
  return {
    async createToken(role) {
      const secret = randomHex(32)
      return { secret, expiresAt: await allow(secret, role) }
    },
    async allowOnce(secret, role) {
      await allow(secret, role)
    },
    async join({ secret, role, id = `edge-${randomHex(8)}` }) {
      const request = { tokenHash: hashOf(secret), role, id }
      const outcome = await store.join(request, clock.now(), certificatesSince())
      if (outcome !== 'joined') throw refusalOf(outcome, { role, id })
      return id
    },
    async check({ role, id }) {
      const member = await store.findMember(id)
      if (member?.forgottenAt) throw forgotten(id)
      if (member && member.role === role && !member.removedAt) return noteCall(member)
      throw notAMember({ role, id })
    },
    list: () => store.listMembers(certificatesSince()),
    async remove(id) {
      if (await store.remove(id, clock.now())) return
      throw new Fault('not_found', 'member_not_found', `The fleet has no member ${id}`)
    },
    listRemoved: () => store.listRemovedAfter(certificatesSince()),
  }
}

export function notAMember({ role, id }: { readonly role: string; readonly id: string }): Fault {
  return new Fault('forbidden', 'not_a_member', `${role} ${id} is not a member of the fleet`)
}

/** Refusal of a node that comes back although an operator said that it never does. */
export function forgotten(id: string): Fault {
  return new Fault(
    'forbidden',
    'node_forgotten',
    `Node ${id} was removed for good (atoll node remove --forget): its sandboxes have ended or continue on other nodes, so it cannot join again. Its files stay as they are; to use the machine, join with an empty data directory`,
  )
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

function refusalOf(
  outcome: Exclude<JoinOutcome, 'joined'>,
  { role, id }: { readonly role: MemberRole; readonly id: string },
): Fault {
  if (outcome === 'invalid_token') {
    const message =
      'The join token is wrong, used or expired: make a new one with atoll node token or atoll edge token'
    return new Fault('forbidden', 'join_token', message)
  }
  if (outcome === 'forgotten') return forgotten(id)
  if (outcome === 'other_role') {
    return new Fault('forbidden', 'join_token', `The join token is not for the role ${role}`)
  }
  return new Fault(
    'conflict',
    'member_exists',
    `${role} ${id} is a member already, or was removed less than a day ago, so that its old certificate is still valid: remove it with atoll node remove ${id} and wait a day, or start with an empty data directory`,
  )
}
