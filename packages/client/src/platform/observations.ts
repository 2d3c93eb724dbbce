import { SandboxLogEntry } from '@atoll/contracts/logs'
import type { LogLevel } from '@atoll/contracts/logs'
import { SandboxMetric } from '@atoll/contracts/metrics'
import { z } from 'zod'
import type * as replies from '../replies.ts'
import { readReply } from './read-reply.ts'
import { sendRequest } from './request.ts'
import type { CallOptions, PlatformOptions } from './request.ts'
import { sandboxPath } from './sandboxes.ts'

/** Logs and metrics of sandboxes. Both are empty for an unknown sandbox. */
export interface ObservationCalls {
  readSandboxLogs(
    sandboxId: string,
    query?: LogQuery,
    call?: CallOptions,
  ): Promise<readonly replies.SandboxLogEntry[]>
  /** Lists samples, oldest first. */
  readSandboxMetrics(
    sandboxId: string,
    range?: MetricsRange,
    call?: CallOptions,
  ): Promise<readonly replies.SandboxMetric[]>
}

export interface LogQuery {
  /** Unix milliseconds: entries before it (exclusive) or after it (inclusive). */
  readonly cursor?: number | undefined
  /** 0 to 1000. */
  readonly limit?: number | undefined
  /** `backward`, the default, returns the newest entries first. */
  readonly direction?: 'forward' | 'backward' | undefined
  /** Minimum level. */
  readonly level?: z.infer<typeof LogLevel> | undefined
  /** Case-sensitive text in the message or a field. */
  readonly search?: string | undefined
}

/** Unix seconds, inclusive. */
export interface MetricsRange {
  readonly start?: number | undefined
  readonly end?: number | undefined
}

export function observationCalls(options: PlatformOptions): ObservationCalls {
  return {
    async readSandboxLogs(sandboxId, { cursor, limit, ...filter } = {}, call = {}) {
      const query = { ...filter, cursor: cursor?.toString(), limit: limit?.toString() }
      const path = `/v2${sandboxPath(sandboxId)}/logs`
      const reply = await sendRequest(options, { method: 'GET', path, query, ...call })
      return readReply(z.object({ logs: z.array(SandboxLogEntry) }), reply).logs
    },
    async readSandboxMetrics(sandboxId, { start, end } = {}, call = {}) {
      const query = { start: start?.toString(), end: end?.toString() }
      const path = `${sandboxPath(sandboxId)}/metrics`
      const reply = await sendRequest(options, { method: 'GET', path, query, ...call })
      return readReply(z.array(SandboxMetric), reply)
    },
  }
}
