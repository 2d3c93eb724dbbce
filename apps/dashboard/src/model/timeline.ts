import type { SandboxConnection, SandboxLogEntry, TimelineEvent } from '@atoll/client/replies'
import { endOf } from './process.ts'
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

/** Merges the events of a sandbox, its denied connections and its processes, oldest first. */
export function toMarks(
  events: readonly TimelineEvent[],
  connections: readonly SandboxConnection[],
  log: readonly SandboxLogEntry[] = [],
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
    ...toProcessMarks(log),
  ].toSorted((a, b) => a.at - b.at)
}

/** Messages of envd about processes that clients start. */
export const processMessages = { started: 'Process started', ended: 'Process ended' } as const

/** Output of a process that reads the same has a stream, so it is not taken for an event. */
function toProcessMarks(log: readonly SandboxLogEntry[]): Mark[] {
  const about = (message: string) =>
    log.filter(
      ({ message: text, fields }) =>
        text === message && fields['logger'] === 'process' && fields['stream'] === undefined,
    )
  const started = about(processMessages.started)
  const commandBefore = (end: SandboxLogEntry) =>
    started
      .filter(({ fields, timestamp }) => isSamePid(fields, end) && timestamp <= end.timestamp)
      .reduce<SandboxLogEntry | undefined>(
        (last, one) => (last && last.timestamp > one.timestamp ? last : one),
        undefined,
      )?.fields['command']
  const named = (text: string, { fields }: SandboxLogEntry, command: string | undefined) =>
    `${text}: ${visibleName(command ?? `process ${fields['pid'] ?? '?'}`, 80)}`
  return [
    ...started.map((entry) => ({
      at: Date.parse(entry.timestamp) / 1000,
      label: named(processMessages.started, entry, entry.fields['command']),
      color: '--accent',
    })),
    ...about(processMessages.ended).map((entry) => {
      const code = entry.fields['exitCode'] ?? '0'
      const label = named(processMessages.ended, entry, commandBefore(entry))
      return {
        at: Date.parse(entry.timestamp) / 1000,
        label: code === '0' ? label : `${label} (${endOf(visibleName(code, 10))})`,
        color: code === '0' ? '--faint' : '--bad',
      }
    }),
  ]
}

function isSamePid(fields: SandboxLogEntry['fields'], other: SandboxLogEntry): boolean {
  return fields['pid'] === other.fields['pid']
}
