import { ForkResult } from '@atoll/contracts/snapshots'
import * as views from '@atoll/contracts/sandbox-views'
import { Fault } from '@atoll/kit/fault'
import { z } from 'zod'
import { readPages, readReply } from '../read-reply.ts'
import type { ConnectedSandbox, ListedSandbox, SandboxDetail, SandboxState } from '../replies.ts'
import { exchange, savingLimitMs } from '../request.ts'
import type { Call, PlatformOptions } from '../request.ts'
import { faultFromReply } from '../wire-fault.ts'

export interface SandboxCalls {
  createSandbox(sandbox: NewSandbox, call?: Call): Promise<ConnectedSandbox>
  getSandbox(sandboxId: string, call?: Call): Promise<SandboxDetail>
  /** Newest first; asks for the next page only when the caller comes to it. */
  listSandboxes(filter?: SandboxFilter, call?: Call): AsyncIterable<ListedSandbox>
  killSandbox(sandboxId: string, call?: Call): Promise<void>
  /** The sandbox ends so many seconds from now, sooner or later than it would have. */
  setTimeout(sandboxId: string, timeoutSeconds: number, call?: Call): Promise<void>
  /** Returns once it takes nothing but disk. One that is paused already is a fault, `sandbox_paused`. */
  pauseSandbox(sandboxId: string, wish?: PauseWish, call?: Call): Promise<void>
  /** Resumes a paused sandbox; a running one lives at least `timeoutSeconds` more, never less than before. */
  connectSandbox(sandboxId: string, wish?: ConnectWish, call?: Call): Promise<Connected>
  /** Makes running copies of a running sandbox, which goes on. Each copy succeeds or fails for itself. */
  forkSandbox(sandboxId: string, wish?: ForkWish, call?: Call): Promise<readonly Forked[]>
}

export interface NewSandbox {
  /** The id or name of a template or of a snapshot. */
  readonly templateId: string
  readonly timeoutSeconds?: number | undefined
  readonly metadata?: Record<string, string> | undefined
  readonly envVars?: Record<string, string> | undefined
  /** Pause it at the end of its time instead of ending it. */
  readonly autoPause?: boolean | undefined
}

export interface SandboxFilter {
  readonly states?: readonly SandboxState[] | undefined
  /** Pairs a sandbox must all carry. */
  readonly metadata?: Record<string, string> | undefined
  readonly pageSize?: number | undefined
}

export interface PauseWish {
  /** False: keep the files alone; a resume boots anew. True where it is not given. */
  readonly memory?: boolean | undefined
}

export interface ConnectWish {
  /** 300 where it is not given. */
  readonly timeoutSeconds?: number | undefined
  /** False: boot from the files, even if memory was kept. */
  readonly memory?: boolean | undefined
}

export interface Connected {
  readonly sandbox: ConnectedSandbox
  /** It was paused before. */
  readonly isResumed: boolean
}

export interface ForkWish {
  /** One where it is not given. */
  readonly count?: number | undefined
  /** Until the copies end: 15 where it is not given. */
  readonly timeoutSeconds?: number | undefined
}

export type Forked = { readonly sandbox: ConnectedSandbox } | { readonly fault: Fault }

export function sandboxCalls(options: PlatformOptions): SandboxCalls {
  return {
    async createSandbox({ templateId, timeoutSeconds, ...given }, call) {
      const { metadata, envVars, autoPause } = given
      const body = { templateID: templateId, timeout: timeoutSeconds, metadata, envVars, autoPause }
      const request = { method: 'POST', path: '/v2/sandboxes', body, ...call } as const
      return readReply(views.Sandbox, await exchange(options, request))
    },
    async getSandbox(sandboxId, call) {
      const request = { method: 'GET', path: sandboxPath(sandboxId), ...call } as const
      return readReply(views.SandboxDetail, await exchange(options, request))
    },
    listSandboxes({ states, metadata, pageSize } = {}, call = {}) {
      const query = {
        state: states?.join(','),
        metadata: metadata && toMetadataQuery(metadata),
        limit: pageSize?.toString(),
      }
      return readPages(views.ListedSandbox, options, { path: '/v2/sandboxes', query, ...call })
    },
    async killSandbox(sandboxId, call) {
      await exchange(options, { method: 'DELETE', path: sandboxPath(sandboxId), ...call })
    },
    async setTimeout(sandboxId, timeoutSeconds, call) {
      const path = `${sandboxPath(sandboxId)}/timeout`
      await exchange(options, { method: 'POST', path, body: { timeout: timeoutSeconds }, ...call })
    },
    async pauseSandbox(sandboxId, { memory } = {}, call = {}) {
      const path = `${sandboxPath(sandboxId)}/pause`
      const limits = { limitMs: savingLimitMs, ...call }
      await exchange(options, { method: 'POST', path, body: { memory }, ...limits })
    },
    async connectSandbox(sandboxId, { timeoutSeconds, memory } = {}, call = {}) {
      const path = `/v2${sandboxPath(sandboxId)}/connect`
      const body = { timeout: timeoutSeconds, memory }
      const reply = await exchange(options, { method: 'POST', path, body, ...call })
      return { sandbox: readReply(views.Sandbox, reply), isResumed: reply.status === 201 }
    },
    async forkSandbox(sandboxId, { count, timeoutSeconds } = {}, call = {}) {
      const path = `${sandboxPath(sandboxId)}/fork`
      const body = { count, timeout: timeoutSeconds }
      const limits = { limitMs: savingLimitMs, ...call }
      const reply = await exchange(options, { method: 'POST', path, body, ...limits })
      return readReply(z.array(ForkResult), reply).map(toForked)
    },
  }
}

export function sandboxPath(sandboxId: string): string {
  return `/sandboxes/${encodeURIComponent(sandboxId)}`
}

/** The server undoes one encoding of the whole string and one of each part, beside that of the query itself. */
function toMetadataQuery(metadata: Record<string, string>): string {
  const query = new URLSearchParams()
  for (const [key, value] of Object.entries(metadata)) {
    query.append(encodeURIComponent(key), encodeURIComponent(value))
  }
  return query.toString()
}

function toForked({ sandbox, error }: z.infer<typeof ForkResult>): Forked {
  return sandbox ? { sandbox } : { fault: faultFromReply(error?.code ?? 500, error) }
}
