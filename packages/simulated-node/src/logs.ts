import { LogLevel } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { ServiceImpl } from '@connectrpc/connect'

export interface SimulatedLogs {
  /** Appends log entries of a sandbox. */
  write(id: string, ...entries: readonly SimulatedEntry[]): void
  /** Sets the size and last write time of the log of a sandbox. */
  setSize(id: string, sizeBytes: number, writtenAtMs: number): void
  readonly kept: ReadonlySet<string>
}

export interface SimulatedEntry {
  readonly at: number
  readonly level?: 'debug' | 'info' | 'warn' | 'error'
  readonly message: string
  readonly fields?: Readonly<Record<string, string>>
}

type Methods = Pick<
  ServiceImpl<typeof NodeService>,
  'readLogs' | 'listLogs' | 'listLastLines' | 'deleteLogs'
>

export function simulateLogs(refuse: () => void): SimulatedLogs & { readonly methods: Methods } {
  const written = new Map<string, SimulatedEntry[]>()
  const sizes = new Map<string, { sizeBytes: bigint; writtenAtMs: bigint }>()
  return {
    write: (id, ...entries) => void written.set(id, [...(written.get(id) ?? []), ...entries]),
    setSize: (id, sizeBytes, writtenAtMs) =>
      void sizes.set(id, { sizeBytes: BigInt(sizeBytes), writtenAtMs: BigInt(writtenAtMs) }),
    get kept() {
      return new Set(sizes.keys())
    },
    methods: {
      readLogs({ sandboxId, fromMs = 0n, beforeMs, newestFirst, limit, minLevel, search }) {
        refuse()
        const wanted = (written.get(sandboxId) ?? []).filter(
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
    },
  }
}

const levels = {
  debug: LogLevel.DEBUG,
  info: LogLevel.INFO,
  warn: LogLevel.WARN,
  error: LogLevel.ERROR,
} as const
