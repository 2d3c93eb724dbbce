import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { logWindowMs, windowOf } from '../../domain/log.ts'
import type { LastLine, LogEntry, LogLevel, LogOwners, LogQuery } from '../../domain/log.ts'
import type { Fleet } from '../nodes/fleet.ts'
import type { Placing } from '../nodes/placing.ts'
import { createReadStored } from './read-stored.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'

/** Logs of a team's sandboxes, including ended ones. */
export interface Logs {
  /** Returns entries oldest first. Like `around`, returns nothing for a sandbox that is unknown or another team's. */
  since(of: LogOwner, request: SinceRequest): Promise<LogEntry[]>
  around(of: LogOwner, request: AroundRequest): Promise<LogEntry[]>
  /** Omits sandboxes of other teams, without a line, and of nodes that do not answer. */
  lastLines(teamId: string, sandboxIds: readonly string[]): Promise<LastLine[]>
}

export interface LogOwner {
  readonly teamId: string
  readonly sandboxId: string
}

export interface SinceRequest {
  readonly startMs: number | undefined
  readonly limit: number
}

export interface AroundRequest {
  readonly cursorMs: number | undefined
  readonly direction: 'forward' | 'backward'
  readonly limit: number
  readonly level: LogLevel | undefined
  readonly search: string | undefined
}

const timeoutMs = 10_000
/** A node that sends no heartbeats may still answer. */
const goneTimeoutMs = 2_000
const lastLinesTimeoutMs = 3_000

export function createLogs(deps: {
  readonly store: Pick<SandboxStore, 'find'>
  readonly owners: Pick<LogOwners, 'nodesOf'>
  readonly fleet: Pick<Fleet, 'member' | 'ids'>
  readonly placing: Pick<Placing, 'conditionOf'>
  readonly clock: Clock
}): Logs {
  const { store, owners, fleet, placing, clock } = deps
  const readStored = createReadStored({ fleet, placing })

  async function read({ teamId, sandboxId }: LogOwner, query: LogQuery): Promise<LogEntry[]> {
    const sandbox = await store.find(sandboxId)
    if (sandbox?.teamId !== teamId) return []
    const { nodeId } = sandbox
    const isGone = placing.conditionOf(nodeId) === 'gone'
    const limit = AbortSignal.timeout(isGone ? goneTimeoutMs : timeoutMs)
    try {
      return await fleet.member(nodeId).logs.read(sandboxId, query, limit)
    } catch (cause) {
      return (await readStored(nodeId, sandboxId, query)) ?? absent(cause)
    }
  }

  return {
    since: (of, { startMs, limit }) =>
      read(of, {
        fromMs: startMs ?? clock.now().getTime() - logWindowMs,
        newestFirst: false,
        limit,
      }),
    around: (of, { cursorMs, direction, limit, level, search }) =>
      read(of, {
        ...windowOf(cursorMs, direction, clock.now().getTime()),
        newestFirst: direction === 'backward',
        limit,
        minLevel: level,
        search,
      }),
    async lastLines(teamId, sandboxIds) {
      const places = await owners.nodesOf(teamId, sandboxIds)
      const byNode = Map.groupBy(places, ({ nodeId }) => nodeId)
      const signal = AbortSignal.timeout(lastLinesTimeoutMs)
      const lines = await Promise.all(
        [...byNode].map(async ([nodeId, those]) => {
          const ids = those.map(({ sandboxId }) => sandboxId)
          // A node that is out of reach, or of a release without this method, hides no lines of other nodes.
          return Promise.try(() => fleet.member(nodeId).logs.lastLines(ids, signal)).catch(() => [])
        }),
      )
      return lines.flat()
    },
  }
}

function absent(cause: unknown): never {
  throw new Fault(
    'unavailable',
    'node_unavailable',
    'The node that stores the log does not answer; try again later',
    { cause },
  )
}
