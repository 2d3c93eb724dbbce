import { ForkResult } from '@atoll/contracts/snapshots'
import * as views from '@atoll/contracts/sandboxes/views'
import { Fault } from '@atoll/kit/fault'
import { z } from 'zod'
import { readPages, readReply } from './read-reply.ts'
import type { ConnectedSandbox, ListedSandbox, SandboxDetail, SandboxState } from '../replies.ts'
import { sendRequest, snapshotTimeoutMs } from './request.ts'
import type { CallOptions, PlatformOptions } from './request.ts'
import { faultFromReply } from '../http-fault.ts'

export interface SandboxCalls {
  createSandbox(sandbox: NewSandbox, call?: CallOptions): Promise<ConnectedSandbox>
  getSandbox(sandboxId: string, call?: CallOptions): Promise<SandboxDetail>
  /** Lists newest first. Requests a page only when the caller reaches it. */
  listSandboxes(filter?: SandboxFilter, call?: CallOptions): AsyncIterable<ListedSandbox>
  killSandbox(sandboxId: string, call?: CallOptions): Promise<void>
  /** Sets the end of the sandbox to `timeoutSeconds` from now, sooner or later than before. */
  setTimeout(sandboxId: string, timeoutSeconds: number, call?: CallOptions): Promise<void>
  /** Resolves when the sandbox uses nothing but disk. Fails with `sandbox_paused` if it is already paused. */
  pauseSandbox(sandboxId: string, options?: PauseOptions, call?: CallOptions): Promise<void>
  /**
   * Resumes a paused sandbox. Extends the timeout of a running one to at least `timeoutSeconds`, but never shortens it.
   */
  connectSandbox(
    sandboxId: string,
    options?: ConnectOptions,
    call?: CallOptions,
  ): Promise<ConnectResult>
  /** Starts copies of a running sandbox, which keeps running. Each copy succeeds or fails on its own. */
  forkSandbox(
    sandboxId: string,
    options?: ForkOptions,
    call?: CallOptions,
  ): Promise<readonly ForkOutcome[]>
}

export interface NewSandbox {
  /** ID or name of a template or snapshot. */
  readonly templateId: string
  readonly timeoutSeconds?: number | undefined
  readonly metadata?: Record<string, string> | undefined
  readonly envVars?: Record<string, string> | undefined
  /** Pause the sandbox at its timeout instead of killing it. */
  readonly autoPause?: boolean | undefined
}

export interface SandboxFilter {
  readonly states?: readonly SandboxState[] | undefined
  /** Key-value pairs that must all match. */
  readonly metadata?: Record<string, string> | undefined
  readonly pageSize?: number | undefined
}

export interface PauseOptions {
  /** False keeps only the files, so a resume boots again. Default: true. */
  readonly memory?: boolean | undefined
}

export interface ConnectOptions {
  /** Default: 300. */
  readonly timeoutSeconds?: number | undefined
  /** False boots from the files even if memory was saved. */
  readonly memory?: boolean | undefined
}

export interface ConnectResult {
  readonly sandbox: ConnectedSandbox
  /** Whether the sandbox was paused before. */
  readonly isResumed: boolean
}

export interface ForkOptions {
  /** Default: 1. */
  readonly count?: number | undefined
  /** Timeout of the copies. Default: 15. */
  readonly timeoutSeconds?: number | undefined
}

export type ForkOutcome = { readonly sandbox: ConnectedSandbox } | { readonly fault: Fault }

export function sandboxCalls(options: PlatformOptions): SandboxCalls {
  return {
    async createSandbox({ templateId, timeoutSeconds, ...settings }, call) {
      const { metadata, envVars, autoPause } = settings
      const body = { templateID: templateId, timeout: timeoutSeconds, metadata, envVars, autoPause }
      const request = { method: 'POST', path: '/v2/sandboxes', body, ...call } as const
      return readReply(views.Sandbox, await sendRequest(options, request))
    },
    async getSandbox(sandboxId, call) {
      const request = { method: 'GET', path: sandboxPath(sandboxId), ...call } as const
      return readReply(views.SandboxDetail, await sendRequest(options, request))
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
      await sendRequest(options, { method: 'DELETE', path: sandboxPath(sandboxId), ...call })
    },
    async setTimeout(sandboxId, timeoutSeconds, call) {
      const path = `${sandboxPath(sandboxId)}/timeout`
      await sendRequest(options, {
        method: 'POST',
        path,
        body: { timeout: timeoutSeconds },
        ...call,
      })
    },
    async pauseSandbox(sandboxId, { memory } = {}, call = {}) {
      const path = `${sandboxPath(sandboxId)}/pause`
      const limits = { timeoutMs: snapshotTimeoutMs, ...call }
      await sendRequest(options, { method: 'POST', path, body: { memory }, ...limits })
    },
    async connectSandbox(sandboxId, { timeoutSeconds, memory } = {}, call = {}) {
      const path = `/v2${sandboxPath(sandboxId)}/connect`
      const body = { timeout: timeoutSeconds, memory }
      const reply = await sendRequest(options, { method: 'POST', path, body, ...call })
      return { sandbox: readReply(views.Sandbox, reply), isResumed: reply.status === 201 }
    },
    async forkSandbox(sandboxId, { count, timeoutSeconds } = {}, call = {}) {
      const path = `${sandboxPath(sandboxId)}/fork`
      const body = { count, timeout: timeoutSeconds }
      const limits = { timeoutMs: snapshotTimeoutMs, ...call }
      const reply = await sendRequest(options, { method: 'POST', path, body, ...limits })
      return readReply(z.array(ForkResult), reply).map(toForkOutcome)
    },
  }
}

export function sandboxPath(sandboxId: string): string {
  return `/sandboxes/${encodeURIComponent(sandboxId)}`
}

/** The server decodes the whole string once and each part once, in addition to the encoding of the query itself. */
function toMetadataQuery(metadata: Record<string, string>): string {
  const query = new URLSearchParams()
  for (const [key, value] of Object.entries(metadata)) {
    query.append(encodeURIComponent(key), encodeURIComponent(value))
  }
  return query.toString()
}

function toForkOutcome({ sandbox, error }: z.infer<typeof ForkResult>): ForkOutcome {
  return sandbox ? { sandbox } : { fault: faultFromReply(error?.code ?? 500, error) }
}
