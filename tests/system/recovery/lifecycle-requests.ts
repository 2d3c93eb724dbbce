/** Requests of the lifecycle of a sandbox. Each updates the acknowledged state by its response. */
import type { HttpCloud, HttpSandbox } from '../http-cloud.ts'
import { readCounter } from '../counter.ts'
import type { Random } from '../mutations.ts'
import type { Reply } from '../wire.ts'

export interface KnownSandbox {
  readonly sandbox: HttpSandbox
  /** Counter value when it was last read, or when the sandbox was copied. */
  count: number
  /** State by the last response; `unclear` after a request without a response. */
  state: 'running' | 'paused' | 'unclear'
  /** True after a kill request without a response. */
  mayBeGone: boolean
}

export interface KnownSnapshot {
  /** Lower bound of the counter in the snapshot. */
  readonly count: number
  /** True once a sandbox was created from the snapshot; it then cannot be deleted while that sandbox exists. */
  isUsed: boolean
}

export interface LifecycleAccount {
  readonly sandboxes: Map<string, KnownSandbox>
  readonly killed: Set<string>
  readonly snapshots: Map<string, KnownSnapshot>
  readonly deletedSnapshots: Set<string>
}

export interface RequestContext {
  readonly acknowledged: LifecycleAccount
  readonly cloud: HttpCloud
  readonly random: Random
}

/** Request about one sandbox. */
export type SandboxRequest = (context: RequestContext, entry: KnownSandbox) => Promise<Reply>

export async function pause(context: RequestContext, entry: KnownSandbox): Promise<Reply> {
  entry.count = await readCounter(context.cloud.installation.url, entry.sandbox)
  entry.state = 'unclear'
  const reply = await post(context, `${pathOf(entry)}/pause`, {})
  entry.state = reply.status === 204 ? 'paused' : 'running'
  return reply
}

export async function resume(context: RequestContext, entry: KnownSandbox): Promise<Reply> {
  entry.state = 'unclear'
  const operation = context.random(2) === 0 ? 'connect' : 'resume'
  const reply = await post(context, `${pathOf(entry)}/${operation}`, { timeout })
  entry.state = reply.status === 201 ? 'running' : 'paused'
  return reply
}

export async function kill(
  { acknowledged, cloud }: RequestContext,
  entry: KnownSandbox,
): Promise<Reply> {
  entry.mayBeGone = true
  const reply = await cloud.platform('DELETE', pathOf(entry))
  if (reply.status !== 204) return reply
  acknowledged.killed.add(entry.sandbox.sandboxID)
  acknowledged.sandboxes.delete(entry.sandbox.sandboxID)
  return reply
}

export async function snapshot(context: RequestContext, entry: KnownSandbox): Promise<Reply> {
  entry.count = await readCounter(context.cloud.installation.url, entry.sandbox)
  const reply = await post(context, `${pathOf(entry)}/snapshots`, {})
  if (reply.status === 201) {
    const { snapshotID } = Object(reply.json)
    context.acknowledged.snapshots.set(snapshotID, { count: entry.count, isUsed: false })
  }
  return reply
}

export async function fork(context: RequestContext, entry: KnownSandbox): Promise<Reply> {
  entry.count = await readCounter(context.cloud.installation.url, entry.sandbox)
  const body = { timeout, count: 1 + context.random(maxCopies) }
  const reply = await post(context, `${pathOf(entry)}/fork`, body)
  if (reply.status !== 201) return reply
  const results: { sandbox?: HttpSandbox; error?: object }[] = Object(reply.json)
  for (const { sandbox } of results) if (sandbox) recordSandbox(context, sandbox, entry.count)
  return results.every(({ sandbox }) => sandbox) ? reply : { ...reply, status: 500 }
}

export async function createFrom(
  context: RequestContext,
  snapshotId: string,
  source: KnownSnapshot,
): Promise<Reply> {
  source.isUsed = true
  const reply = await post(context, '/v2/sandboxes', { templateID: snapshotId, timeout })
  if (reply.status === 201) recordSandbox(context, Object(reply.json), source.count)
  return reply
}

export async function deleteSnapshot(
  { acknowledged, cloud }: RequestContext,
  id: string,
): Promise<Reply> {
  acknowledged.snapshots.delete(id)
  const reply = await cloud.platform('DELETE', `/templates/${encodeURIComponent(id)}`)
  if (reply.status === 204) acknowledged.deletedSnapshots.add(id)
  return reply
}

/** Highest number of sandboxes that one request creates. */
export const maxCopies = 2

const timeout = 3600

function recordSandbox(
  { acknowledged }: RequestContext,
  sandbox: HttpSandbox,
  count: number,
): void {
  acknowledged.sandboxes.set(sandbox.sandboxID, {
    sandbox,
    count,
    state: 'running',
    mayBeGone: false,
  })
}

function pathOf({ sandbox }: KnownSandbox): string {
  return `/sandboxes/${sandbox.sandboxID}`
}

function post({ cloud }: RequestContext, path: string, body: object): Promise<Reply> {
  return cloud.platform('POST', path, body)
}
