import { LogLevel, NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { ServiceImpl } from '@connectrpc/connect'
import { Fault } from '@atoll/kit/fault'
import type { SandboxLogs } from '../app/logs/collect-logs.ts'
import type { ObjectAccess } from '../app/objects/object-access.ts'
import { checkId } from '../domain/sandboxes/cell.ts'
import type { LogLevel as Level } from '../domain/sandboxes/log.ts'

const maxLastLines = 100

export function logMethods(
  logs: SandboxLogs,
  objects: Pick<ObjectAccess, 'readLog'>,
): Pick<ServiceImpl<typeof NodeService>, 'readLogs' | 'listLogs' | 'listLastLines' | 'deleteLogs'> {
  return {
    async readLogs({ sandboxId, fromMs, beforeMs, minLevel, fromObjects, ...rest }) {
      checkId(sandboxId)
      const { newestFirst, limit, search } = rest
      const query = {
        ...{ sandboxId, newestFirst, limit, search },
        fromMs: fromMs === undefined ? undefined : Number(fromMs),
        beforeMs: beforeMs === undefined ? undefined : Number(beforeMs),
        minLevel: names[minLevel],
      }
      const entries = await (fromObjects ? objects.readLog(query) : logs.read(query))
      return {
        entries: entries.map(({ at, level, message, fields }) => ({
          atMs: BigInt(at),
          level: values[level],
          message,
          fields: { ...fields },
        })),
      }
    },

    async listLogs() {
      const kept = await logs.list()
      return {
        logs: kept.map(({ sandboxId, sizeBytes, writtenAtMs }) => ({
          sandboxId,
          sizeBytes: BigInt(sizeBytes),
          writtenAtMs: BigInt(Math.floor(writtenAtMs)),
        })),
      }
    },

    async listLastLines({ sandboxIds }) {
      if (sandboxIds.length > maxLastLines) {
        throw new Fault('invalid', 'too_many_ids', `Name at most ${maxLastLines} sandboxes`)
      }
      sandboxIds.forEach(checkId)
      const lines = await logs.lastPrinted(sandboxIds)
      return {
        lines: [...lines].map(([sandboxId, { at, text }]) => ({
          sandboxId,
          atMs: BigInt(at),
          text,
        })),
      }
    },

    async deleteLogs({ sandboxIds }) {
      sandboxIds.forEach(checkId)
      await logs.remove(sandboxIds)
      return {}
    },
  }
}

const values = {
  debug: LogLevel.DEBUG,
  info: LogLevel.INFO,
  warn: LogLevel.WARN,
  error: LogLevel.ERROR,
} as const satisfies Record<Level, LogLevel>

const names = {
  [LogLevel.UNSPECIFIED]: undefined,
  [LogLevel.DEBUG]: 'debug',
  [LogLevel.INFO]: 'info',
  [LogLevel.WARN]: 'warn',
  [LogLevel.ERROR]: 'error',
} as const satisfies Record<LogLevel, Level | undefined>
