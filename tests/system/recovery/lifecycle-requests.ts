/** Requests of the lifecycle of a sandbox. Each keeps the acknowledged true to the responses. */
import type { HttpCloud, HttpSandbox } from '../http-cloud.ts'
import { readCounter } from '../counter.ts'
import type { Random } from '../mutations.ts'
import type { Reply } from '../wire.ts'

export interface Known {
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
  readonly sandboxes: Map<string, Known>
  readonly killed: Set<string>
  readonly snapshots: Map<string, KnownSnapshot>
  readonly deletedSnapshots: Set<string>
}

export interface Scene {
  readonly acknowledged: LifecycleAccount
  readonly cloud: HttpCloud
  readonly random: Random
}

/** Request about one sandbox. */
export type SandboxRequest = (scene: Scene, known: Known) => Promise<Reply>

export async function pause(scene: Scene, known: Known): Promise<Reply> {
  known.count = await readCounter(scene.cloud.installation.url, known.sandbox)
  known.state = 'unclear'
  const reply = await post(scene, `${pathOf(known)}/pause`, {})
  known.state = reply.status === 204 ? 'paused' : 'running'
  return reply
}

export async function resume(scene: Scene, known: Known): Promise<Reply> {
  known.state = 'unclear'
  const operation = scene.random(2) === 0 ? 'connect' : 'resume'
  const reply = await post(scene, `${pathOf(known)}/${operation}`, { timeout })
  known.state = reply.status === 201 ? 'running' : 'paused'
  return reply
}

export async function kill({ acknowledged, cloud }: Scene, known: Known): Promise<Reply> {
  known.mayBeGone = true
  const reply = await cloud.platform('DELETE', pathOf(known))
  if (reply.status !== 204) return reply
  acknowledged.killed.add(known.sandbox.sandboxID)
  acknowledged.sandboxes.delete(known.sandbox.sandboxID)
  return reply
}

export async function snapshot(scene: Scene, known: Known): Promise<Reply> {
  known.count = await readCounter(scene.cloud.installation.url, known.sandbox)
  const reply = await post(scene, `${pathOf(known)}/snapshots`, {})
  if (reply.status === 201) {
    const { snapshotID } = Object(reply.json)
    scene.acknowledged.snapshots.set(snapshotID, { count: known.count, isUsed: false })
  }
  return reply
}

export async function fork(scene: Scene, known: Known): Promise<Reply> {
  known.count = await readCounter(scene.cloud.installation.url, known.sandbox)
  const body = { timeout, count: 1 + scene.random(maxCopies) }
  const reply = await post(scene, `${pathOf(known)}/fork`, body)
  if (reply.status !== 201) return reply
  const results: { sandbox?: HttpSandbox; error?: object }[] = Object(reply.json)
  for (const { sandbox } of results) if (sandbox) enter(scene, sandbox, known.count)
  return results.every(({ sandbox }) => sandbox) ? reply : { ...reply, status: 500 }
}

export async function createFrom(
  scene: Scene,
  snapshotId: string,
  source: KnownSnapshot,
): Promise<Reply> {
  source.isUsed = true
  const reply = await post(scene, '/v2/sandboxes', { templateID: snapshotId, timeout })
  if (reply.status === 201) enter(scene, Object(reply.json), source.count)
  return reply
}

export async function deleteSnapshot({ acknowledged, cloud }: Scene, id: string): Promise<Reply> {
  acknowledged.snapshots.delete(id)
  const reply = await cloud.platform('DELETE', `/templates/${encodeURIComponent(id)}`)
  if (reply.status === 204) acknowledged.deletedSnapshots.add(id)
  return reply
}

/** Highest number of sandboxes that one request creates. */
export const maxCopies = 2

const timeout = 3600

function enter({ acknowledged }: Scene, sandbox: HttpSandbox, count: number): void {
  acknowledged.sandboxes.set(sandbox.sandboxID, {
    sandbox,
    count,
    state: 'running',
    mayBeGone: false,
  })
}

function pathOf({ sandbox }: Known): string {
  return `/sandboxes/${sandbox.sandboxID}`
}

function post({ cloud }: Scene, path: string, body: object): Promise<Reply> {
  return cloud.platform('POST', path, body)
}
