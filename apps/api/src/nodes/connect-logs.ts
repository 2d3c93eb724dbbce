import { LogLevel, NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { LogEntry as Message } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Code, ConnectError, createClient } from '@connectrpc/connect'
import type { Transport } from '@connectrpc/connect'
import type { LogEntry, LogNode, LogQuery } from '../domain/log.ts'
import { levelNames, levelValues } from './log-level.ts'

/** Client for sandbox logs on the node. */
export function connectLogs(transport: Transport): LogNode {
  const client = createClient(NodeService, transport)
  return {
    async read(sandboxId, query, signal) {
      const { entries } = await client.readLogs(toRequest(sandboxId, query), { signal })
      return entries.map(fromMessage)
    },
    async readStored(sandboxId, query, signal) {
      const request = { ...toRequest(sandboxId, query), fromObjects: true }
      try {
        const { entries } = await client.readLogs(request, { signal })
        return entries.map(fromMessage)
      } catch (error) {
        if (ConnectError.from(error).code === Code.NotFound) return undefined
        throw error
      }
    },
    async lastLines(sandboxIds, signal) {
      const { lines } = await client.listLastLines({ sandboxIds: [...sandboxIds] }, { signal })
      return lines.map(({ sandboxId, atMs, text }) => ({ sandboxId, at: Number(atMs), text }))
    },
    async list(signal) {
      const { logs } = await client.listLogs({}, { signal })
      return logs.map(({ sandboxId, sizeBytes, writtenAtMs }) => ({
        sandboxId,
        sizeBytes: Number(sizeBytes),
        writtenAtMs: Number(writtenAtMs),
      }))
    },
    async remove(sandboxIds, signal) {
      await client.deleteLogs({ sandboxIds: [...sandboxIds] }, { signal })
    },
  }
}

function toRequest(
  sandboxId: string,
  { fromMs, beforeMs, newestFirst, limit, minLevel, search }: LogQuery,
) {
  return {
    sandboxId,
    fromMs: BigInt(fromMs),
    ...(beforeMs !== undefined && { beforeMs: BigInt(beforeMs) }),
    newestFirst,
    limit,
    minLevel: minLevel === undefined ? LogLevel.UNSPECIFIED : levelValues[minLevel],
    search: search ?? '',
  }
}

function fromMessage({ atMs, level, message, fields }: Message): LogEntry {
  return { at: Number(atMs), level: levelNames[level], message, fields }
}
