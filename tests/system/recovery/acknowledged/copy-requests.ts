import assert from 'node:assert/strict'
import type { HttpSandbox } from '../../http-cloud.ts'
import type { Reply } from '../../wire.ts'
import { checkCounter } from './acknowledged-state.ts'
import { checkNoTemplate } from './template-requests.ts'
import { killSandbox, pickSandbox, post, sandboxOf, timeout } from './acknowledged-request.ts'
import type { RequestContext, AcknowledgedRequest } from './acknowledged-request.ts'

export async function fork(context: RequestContext): Promise<AcknowledgedRequest> {
  const entry = pickSandbox(context)
  await checkCounter(context.cloud, entry)
  const { count, sandbox } = entry
  return {
    send: () => post(context, `/sandboxes/${sandbox.sandboxID}/fork`, { timeout, count: 2 }),
    status: 201,
    async check({ json, text }) {
      const results: { readonly sandbox?: HttpSandbox }[] = Object(json)
      const copies = results.flatMap((result) => result.sandbox ?? [])
      assert.equal(copies.length, 2, text)
      for (const copy of copies) await checkCopy(context, copy, count)
    },
  }
}

export async function snapshot(context: RequestContext): Promise<AcknowledgedRequest> {
  const entry = pickSandbox(context)
  await checkCounter(context.cloud, entry)
  const { count, sandbox } = entry
  return {
    send: () => post(context, `/sandboxes/${sandbox.sandboxID}/snapshots`, {}),
    status: 201,
    record: (reply) => void context.acknowledged.snapshots.set(snapshotIdOf(reply), count),
    async check(reply) {
      const body = { templateID: snapshotIdOf(reply), timeout }
      const createReply = await post(context, '/v2/sandboxes', body)
      assert.equal(createReply.status, 201, createReply.text)
      await checkCopy(context, sandboxOf(createReply), count)
    },
  }
}

export async function deleteSnapshot(context: RequestContext): Promise<AcknowledgedRequest> {
  const { sandbox } = pickSandbox(context)
  const createReply = await post(context, `/sandboxes/${sandbox.sandboxID}/snapshots`, {})
  assert.equal(createReply.status, 201, createReply.text)
  const id = snapshotIdOf(createReply)
  return {
    send: () => context.cloud.platform('DELETE', `/templates/${encodeURIComponent(id)}`),
    status: 204,
    record: () => void context.acknowledged.deleted.add(id),
    check: () => checkNoTemplate(context, id),
  }
}

/** Checks that a copy has the memory of its original, then kills it. */
async function checkCopy(
  context: RequestContext,
  sandbox: HttpSandbox,
  count: number,
): Promise<void> {
  await checkCounter(context.cloud, { sandbox, count, hasNames: false })
  await killSandbox(context, sandbox)
}

function snapshotIdOf({ json }: Reply): string {
  return Object(json).snapshotID
}
