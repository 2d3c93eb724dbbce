import { liveState, openChannel } from './live.ts'
import type { LiveMessage } from './live.ts'
import type { ReadAnswer, Reads } from './reads.ts'

/** Watches the answers that a resource was made from. */
export interface Watch {
  /** Continues with the answers of the last load. */
  follow(reads: Reads): void
  close(): void
}

export interface WatchEvents {
  /** Called with all answers, new and unchanged. `follow` allows the next call. */
  onChange(known: ReadonlyMap<string, ReadAnswer>): void
  onLost(): void
}

const maxPaths = 100
const minEveryMs = 1_000

/** Returns undefined if the answers cannot be watched: the caller asks again later. */
export function openWatch(reads: Reads, everyMs: number, events: WatchEvents): Watch | undefined {
  if (liveState.value !== 'open' || !isWatchable(reads)) return undefined
  let current = reads.used
  const request = () => ({
    watch: {
      paths: [...current].map(([path, { tag }]) => ({ path, tag })),
      everyMs: Math.max(minEveryMs, everyMs),
    },
  })
  const onMessage = ({ answers, closed }: LiveMessage) => {
    if (closed) return events.onLost()
    return events.onChange(new Map([...current, ...parseAnswers(answers)]))
  }
  let channel = openChannel({ request, onMessage, onLost: events.onLost })
  return {
    follow(next) {
      const isSame = next.used.size === current.size && [...next.used.keys()].every(isCurrent)
      current = next.used
      if (isSame) return channel.control({ ack: 1 })
      channel.close()
      if (isWatchable(next)) channel = openChannel({ request, onMessage, onLost: events.onLost })
      else events.onLost()
    },
    close: () => channel.close(),
  }
  function isCurrent(path: string): boolean {
    return current.has(path)
  }
}

function isWatchable({ used }: Reads): boolean {
  return used.size > 0 && used.size <= maxPaths
}

function parseAnswers(answers: unknown): [string, ReadAnswer][] {
  return typeof answers === 'object' && answers !== null ? Object.entries(answers) : []
}
