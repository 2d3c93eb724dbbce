import type { LineageStore } from '../../domain/sandboxes/lineage.ts'
import { absent } from '../../domain/sandboxes/sandbox.ts'
import type { SandboxEventStore } from '../../domain/sandboxes/sandbox-events.ts'
import type { TeamSandbox } from './file-changes.ts'

export interface TimelineEvent {
  readonly at: Date
  readonly kind: 'created' | 'paused' | 'resumed' | 'copied' | 'forked' | 'ended'
  readonly sandboxId?: string
  readonly reason?: string | undefined
}

/** Returns what happened to a team's sandbox, oldest first. The sandbox may have ended. */
export type ReadTimeline = (sandbox: TeamSandbox) => Promise<TimelineEvent[]>

const maxForks = 200

export function createReadTimeline({
  lineage,
  sandboxEvents,
}: {
  readonly lineage: LineageStore
  readonly sandboxEvents: SandboxEventStore
}): ReadTimeline {
  return async ({ teamId, sandboxId }) => {
    const self = await lineage.find(teamId, sandboxId)
    if (!self || self.state === 'creating') throw absent(sandboxId)
    const copies = await lineage.childrenOf(teamId, [sandboxId], maxForks)
    const forks = copies.filter(({ parent }) => parent?.kind === 'fork')
    const { createdAt, endedAt, endReason: reason } = self
    const events: TimelineEvent[] = [
      { at: createdAt, kind: 'created' },
      ...(await sandboxEvents.list(sandboxId)),
      ...forks.map(({ id, createdAt: at }) => ({ at, kind: 'forked' as const, sandboxId: id })),
      ...(endedAt ? [{ at: endedAt, kind: 'ended' as const, reason }] : []),
    ]
    return events.toSorted((a, b) => a.at.getTime() - b.at.getTime())
  }
}
