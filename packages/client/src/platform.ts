import { CreatedTeamApiKey, TeamApiKey } from '@atoll/contracts/keys'
import * as views from '@atoll/contracts/sandbox-views'
import { Fault } from '@atoll/kit/fault'
import { z } from 'zod'
import type {
  ApiKey,
  ConnectedSandbox,
  CreatedApiKey,
  ListedSandbox,
  SandboxDetail,
  SandboxState,
} from './replies.ts'
import { exchange } from './request.ts'
import type { PlatformOptions } from './request.ts'

/** The platform API as our own programs use it. Every failure is a `Fault` whose kind comes from the status. */
export interface PlatformClient {
  /** Resolves when the server answers that it is well. */
  health(call?: Call): Promise<void>
  createSandbox(sandbox: NewSandbox, call?: Call): Promise<ConnectedSandbox>
  getSandbox(sandboxId: string, call?: Call): Promise<SandboxDetail>
  /** Newest first; asks for the next page only when the caller comes to it. */
  listSandboxes(filter?: SandboxFilter, call?: Call): AsyncIterable<ListedSandbox>
  killSandbox(sandboxId: string, call?: Call): Promise<void>
  /** The sandbox ends so many seconds from now, sooner or later than it would have. */
  setTimeout(sandboxId: string, timeoutSeconds: number, call?: Call): Promise<void>
  /** Resumes a paused sandbox; a running one lives at least `timeoutSeconds` more, never less than before. */
  connectSandbox(sandboxId: string, timeoutSeconds?: number, call?: Call): Promise<ConnectedSandbox>
  listKeys(call?: Call): Promise<readonly ApiKey[]>
  createKey(name: string, call?: Call): Promise<CreatedApiKey>
  deleteKey(keyId: string, call?: Call): Promise<void>
}

export interface Call {
  readonly signal?: AbortSignal
}

export interface NewSandbox {
  readonly templateId: string
  readonly timeoutSeconds?: number | undefined
  readonly metadata?: Record<string, string> | undefined
  readonly envVars?: Record<string, string> | undefined
}

export interface SandboxFilter {
  readonly states?: readonly SandboxState[] | undefined
  /** Pairs a sandbox must all carry. */
  readonly metadata?: Record<string, string> | undefined
  readonly pageSize?: number | undefined
}

export function createPlatformClient(options: PlatformOptions): PlatformClient {
  return {
    async health(call) {
      await exchange(options, { method: 'GET', path: '/health', ...call })
    },
    async createSandbox({ templateId, timeoutSeconds, metadata, envVars }, call) {
      const body = { templateID: templateId, timeout: timeoutSeconds, metadata, envVars }
      const reply = await exchange(options, {
        method: 'POST',
        path: '/v2/sandboxes',
        body,
        ...call,
      })
      return read(views.Sandbox, reply.body)
    },
    async getSandbox(sandboxId, call) {
      const reply = await exchange(options, {
        method: 'GET',
        path: sandboxPath(sandboxId),
        ...call,
      })
      return read(views.SandboxDetail, reply.body)
    },
    listSandboxes: (filter, call) => sandboxPages(options, filter ?? {}, call ?? {}),
    async killSandbox(sandboxId, call) {
      await exchange(options, { method: 'DELETE', path: sandboxPath(sandboxId), ...call })
    },
    async setTimeout(sandboxId, timeoutSeconds, call) {
      const path = `${sandboxPath(sandboxId)}/timeout`
      await exchange(options, { method: 'POST', path, body: { timeout: timeoutSeconds }, ...call })
    },
    async connectSandbox(sandboxId, timeoutSeconds, call) {
      const path = `/v2${sandboxPath(sandboxId)}/connect`
      const body = { timeout: timeoutSeconds }
      const reply = await exchange(options, { method: 'POST', path, body, ...call })
      return read(views.Sandbox, reply.body)
    },
    async listKeys(call) {
      const reply = await exchange(options, { method: 'GET', path: '/api-keys', ...call })
      return read(z.array(TeamApiKey), reply.body)
    },
    async createKey(name, call) {
      const request = { method: 'POST', path: '/api-keys', body: { name }, ...call } as const
      return read(CreatedTeamApiKey, (await exchange(options, request)).body)
    },
    async deleteKey(keyId, call) {
      const path = `/api-keys/${encodeURIComponent(keyId)}`
      await exchange(options, { method: 'DELETE', path, ...call })
    },
  }
}

async function* sandboxPages(
  options: PlatformOptions,
  filter: SandboxFilter,
  call: Call,
): AsyncGenerator<ListedSandbox> {
  let nextToken: string | undefined
  do {
    const query = {
      state: filter.states?.join(','),
      metadata: filter.metadata && toMetadataQuery(filter.metadata),
      limit: filter.pageSize?.toString(),
      nextToken,
    }
    const reply = await exchange(options, { method: 'GET', path: '/v2/sandboxes', query, ...call })
    yield* read(z.array(views.ListedSandbox), reply.body)
    nextToken = reply.headers.get('x-next-token') || undefined
  } while (nextToken)
}

/** The server undoes one encoding of the whole string and one of each part, beside that of the query itself. */
function toMetadataQuery(metadata: Record<string, string>): string {
  const query = new URLSearchParams()
  for (const [key, value] of Object.entries(metadata)) {
    query.append(encodeURIComponent(key), encodeURIComponent(value))
  }
  return query.toString()
}

function sandboxPath(sandboxId: string): string {
  return `/sandboxes/${encodeURIComponent(sandboxId)}`
}

function read<T>(schema: z.ZodType<T>, body: unknown): T {
  const parsed = schema.safeParse(body)
  if (parsed.success) return parsed.data
  const message = `The server sent a reply this version does not understand: ${z.prettifyError(parsed.error)}`
  throw new Fault('internal', 'reply_not_understood', message)
}
