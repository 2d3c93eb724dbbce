import { SandboxConnection } from '@atoll/contracts/network/connections'
import { ChangedFile, FileChanges } from '@atoll/contracts/sandboxes/changes'
import { SandboxLineage } from '@atoll/contracts/sandboxes/lineage'
import { z } from 'zod'
import type * as replies from '../replies.ts'
import { readReply } from './read-reply.ts'
import { sandboxPath } from './sandboxes.ts'
import { sendRequest } from './request.ts'
import type { CallOptions, PlatformOptions } from './request.ts'

/** Calls that look into a sandbox without waking it. */
export interface InspectionCalls {
  /** Returns one page of the files that the sandbox changed. */
  listFileChanges(
    sandboxId: string,
    query?: FileChangeQuery,
    call?: CallOptions,
  ): Promise<replies.FileChanges>
  readFileChange(
    sandboxId: string,
    query: { readonly path: string; readonly with?: string | undefined },
    call?: CallOptions,
  ): Promise<replies.ChangedFile>
  /** Returns the sandboxes that this one was copied from, all their copies, and their snapshots. */
  readLineage(sandboxId: string, call?: CallOptions): Promise<replies.SandboxLineage>
  /** Returns outgoing connections, newest first. */
  listConnections(sandboxId: string, call?: CallOptions): Promise<replies.SandboxConnection[]>
}

export interface FileChangeQuery {
  readonly path?: string | undefined
  readonly limit?: number | undefined
  readonly nextToken?: string | undefined
  /** Sandbox to compare with instead of the template. */
  readonly with?: string | undefined
}

export function inspectionCalls(options: PlatformOptions): InspectionCalls {
  return {
    async listFileChanges(sandboxId, { limit, ...rest } = {}, call = {}) {
      const query = { ...rest, limit: limit?.toString() }
      const request = { method: 'GET', path: `${sandboxPath(sandboxId)}/changes`, query } as const
      return readReply(FileChanges, await sendRequest(options, { ...request, ...call }))
    },
    async readFileChange(sandboxId, query, call = {}) {
      const path = `${sandboxPath(sandboxId)}/changes/content`
      const request = { method: 'GET', path, query: { ...query } } as const
      return readReply(ChangedFile, await sendRequest(options, { ...request, ...call }))
    },
    async readLineage(sandboxId, call = {}) {
      const path = `${sandboxPath(sandboxId)}/lineage`
      const reply = await sendRequest(options, { method: 'GET', path, ...call })
      return readReply(SandboxLineage, reply)
    },
    async listConnections(sandboxId, call = {}) {
      const path = `${sandboxPath(sandboxId)}/connections`
      const reply = await sendRequest(options, { method: 'GET', path, ...call })
      return readReply(z.object({ connections: z.array(SandboxConnection) }), reply).connections
    },
  }
}
