import type { SandboxConnection, TimelineEvent } from '@atoll/client/replies'
import { visibleName } from './visible-text.ts'

/** A moment on the time axis of the plots. */
export interface Mark {
  /** Unix seconds. */
  readonly at: number
  readonly label: string
  /** Name of a CSS variable. */
  readonly color: string
}

const labels = {
  created: ['Created', '--good'],
  paused: ['Paused', '--warn'],
  resumed: ['Resumed', '--good'],
  copied: ['Copied, for a snapshot or a fork', '--soft'],
  forked: ['Forked', '--soft'],
  ended: ['Ended', '--bad'],
} as const satisfies Record<TimelineEvent['kind'], readonly [string, string]>

const maxDenied = 50

/** Merges the events of a sandbox and its denied connections, oldest first. */
export function toMarks(
  events: readonly TimelineEvent[],
  connections: readonly SandboxConnection[],
): Mark[] {
  const denied = connections.filter(({ verdict }) => verdict === 'denied').slice(0, maxDenied)
  return [
    ...events.map(({ at, kind, sandboxID, reason }) => {
      const [label, color] = labels[kind]
      const detail = sandboxID ?? (reason === undefined ? undefined : visibleName(reason, 120))
      return {
        at: Date.parse(at) / 1000,
        label: detail === undefined ? label : `${label}: ${detail}`,
        color,
      }
    }),
    ...denied.map(({ lastAt, name, address, port, count }) => ({
      at: Date.parse(lastAt) / 1000,
      label: `Denied: ${visibleName(name ?? `${address ?? ''}:${port}`, 80)}${count > 1 ? ` (${count} times)` : ''}`,
      color: '--bad',
    })),
  ].toSorted((a, b) => a.at - b.at)
}
