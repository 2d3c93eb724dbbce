import type { Sandbox } from './sandbox.ts'

/** A change of state that the record itself does not keep. */
export interface SandboxEvent {
  readonly at: Date
  readonly kind: SandboxEventKind
}

export const sandboxEventKinds = ['paused', 'resumed', 'copied'] as const

export type SandboxEventKind = (typeof sandboxEventKinds)[number]

/** Newest events that are kept of a sandbox. */
export const maxSandboxEvents = 200

/** Returns the event that a change of the record is, if it is one. `copied`: for a snapshot or for forks. */
export function findEvent(before: Sandbox, after: Sandbox): SandboxEventKind | undefined {
  if (before.state === after.state) return undefined
  if (after.state === 'snapshotting') return 'copied'
  if (after.state === 'paused') return before.state === 'resuming' ? undefined : 'paused'
  const wasPaused = before.state === 'resuming' || before.state === 'paused'
  return after.state === 'running' && wasPaused ? 'resumed' : undefined
}

export interface SandboxEventStore {
  /** Oldest first. */
  list(sandboxId: string): Promise<SandboxEvent[]>
}
