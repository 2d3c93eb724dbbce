import { LogLevel } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { ServiceImpl } from '@connectrpc/connect'
import type { NodeEvent } from './events.ts'
import { reachObjects } from './objects.ts'
import { notFound } from './sandbox.ts'
import type { NodeState, SimulatedEntry } from './sandbox.ts'

export interface SimulatedLogs {
  /** Appends log entries of a sandbox. */
  write(id: string, ...entries: readonly SimulatedEntry[]): void
  /** Sets the size and last write time of the log of a sandbox. */
  setSize(id: string, sizeBytes: number, writtenAtMs: number): void
  readonly kept: ReadonlySet<string>
}

type Methods = Pick<
  ServiceImpl<typeof NodeService>,
  'readLogs' | 'listLogs' | 'listLastLines' | 'deleteLogs'
>

type LogState = Pick<NodeState, 'running' | 'paused' | 'objects' | 'failures'>

export function simulateLogs(state: LogState) {
  const written = new Map<string, readonly SimulatedEntry[]>()
  const sizes = new Map<string, { sizeBytes: bigint; writtenAtMs: bigint }>()
  const controls: SimulatedLogs = {
    write: (id, ...entries) => void written.set(id, [...(written.get(id) ?? []), ...entries]),
    setSize: (id, sizeBytes, writtenAtMs) =>
      void sizes.set(id, { sizeBytes: BigInt(sizeBytes), writtenAtMs: BigInt(writtenAtMs) }),
    get kept() {
      return new Set(sizes.keys())
    },
  }
  return { controls, methods: logMethods(state, written, sizes), ...movesOfLogs(state, written) }
}

type Written = Map<string, readonly SimulatedEntry[]>

/** Uploads when a sandbox ends or is paused, and fetches with the content of a sandbox. */
function movesOfLogs({ objects }: Pick<LogState, 'objects'>, written: Written) {
  return {
    follow(event: NodeEvent): void {
      if (event.case !== 'ended' && event.case !== 'paused') return
      const id = event.value.sandboxId
      const entries = written.get(id)
      if (!entries || !objects || objects.isDown) return
      const stored = objects.logs.get(id) ?? []
      const byTime = new Map([...stored, ...entries].map((entry) => [entry.at, entry]))
      objects.logs.set(
        id,
        [...byTime.values()].toSorted((a, b) => a.at - b.at),
      )
    },
    fetch(id: string): void {
      const stored = objects?.isDown ? undefined : objects?.logs.get(id)
      if (stored) written.set(id, stored)
    },
  }
}

function logMethods(
  { running, paused, objects, failures }: LogState,
  written: Written,
  sizes: Map<string, { sizeBytes: bigint; writtenAtMs: bigint }>,
): Methods {
  const refuse = failures.throwIfDown
  const find = (id: string, fromObjects: boolean): readonly SimulatedEntry[] => {
    if (fromObjects) return reachObjects(objects).logs.get(id) ?? fail(notFound())
    const isHere = running.has(id) || paused.has(id)
    const kept = written.get(id)
    if (kept || isHere || !objects) return kept ?? []
    return reachObjects(objects).logs.get(id) ?? []
  }
  return {
    readLogs(request) {
      refuse()
      const { sandboxId, fromMs = 0n, beforeMs, newestFirst, limit, minLevel, search } = request
      const wanted = find(sandboxId, request.fromObjects).filter(
        ({ at, level = 'info', message, fields = {} }) =>
          at >= fromMs &&
          (beforeMs === undefined || at < beforeMs) &&
          levels[level] >= minLevel &&
          [message, ...Object.values(fields)].some((text) => text.includes(search)),
      )
      const ordered = newestFirst ? wanted.toReversed() : wanted
      return {
        entries: ordered.slice(0, limit).map(({ at, level = 'info', message, fields = {} }) => ({
          atMs: BigInt(at),
          level: levels[level],
          message,
          fields: { ...fields },
        })),
      }
    },
    listLogs() {
      refuse()
      return { logs: [...sizes].map(([sandboxId, size]) => ({ sandboxId, ...size })) }
    },
    listLastLines({ sandboxIds }) {
      refuse()
      const lines = sandboxIds.flatMap((sandboxId) => {
        const last = written
          .get(sandboxId)
          ?.findLast(({ fields = {} }) => fields['stream'] !== undefined)
        if (!last) return []
        return [{ sandboxId, atMs: BigInt(last.at), text: last.message.slice(0, 200) }]
      })
      return { lines }
    },
    deleteLogs({ sandboxIds }) {
      refuse()
      for (const id of sandboxIds) sizes.delete(id)
      return {}
    },
  }
}

function fail(error: Error): never {
  throw error
}

const levels = {
  debug: LogLevel.DEBUG,
  info: LogLevel.INFO,
  warn: LogLevel.WARN,
  error: LogLevel.ERROR,
} as const
