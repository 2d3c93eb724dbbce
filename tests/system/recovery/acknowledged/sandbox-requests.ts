import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { envdHeaders } from '../../http-cloud.ts'
import { send } from '../../wire.ts'
import { addCountingSandbox, checkCounter, runScript, stateOf } from './acknowledged-state.ts'
import type { AcknowledgedSandbox } from './acknowledged-state.ts'
import { recordKill, pickSandbox, post, sandboxOf, timeout } from './acknowledged-request.ts'
import type { RequestContext, AcknowledgedRequest } from './acknowledged-request.ts'

export async function create(context: RequestContext): Promise<AcknowledgedRequest> {
  const { acknowledged, cloud } = context
  const mark = randomUUID()
  const body = { templateID: 'base', timeout, envVars: { MARK: mark }, metadata: { mark } }
  return {
    send: () => post(context, '/v2/sandboxes', body),
    status: 201,
    async check(reply) {
      const sandbox = sandboxOf(reply)
      const { json } = await cloud.platform('GET', `/sandboxes/${sandbox.sandboxID}`)
      assert.deepEqual(Object(json).metadata, { mark })
      assert.equal(await runScript(cloud, sandbox, 'echo $MARK'), `${mark}\n`)
      await addCountingSandbox(acknowledged, cloud, sandbox)
    },
  }
}

export async function write(context: RequestContext): Promise<AcknowledgedRequest> {
  const { cloud } = context
  const { sandbox } = pickSandbox(context)
  const mark = randomUUID()
  const path = `/home/user/${mark}`
  const headers = { ...envdHeaders(sandbox), 'Content-Type': 'application/octet-stream' }
  const call = { method: 'POST', path: `/files?path=${path}&username=root`, headers }
  return {
    send: () => send(cloud.installation.url, { ...call, body: mark }),
    status: 200,
    check: async () => assert.equal(await runScript(cloud, sandbox, `cat ${path}`), mark),
  }
}

export async function pause(context: RequestContext): Promise<AcknowledgedRequest> {
  const { acknowledged, cloud } = context
  const entry = pickSandbox(context)
  const { sandboxID } = entry.sandbox
  const mark = randomUUID()
  await runScript(cloud, entry.sandbox, `echo ${mark} > /home/user/before-pause`)
  await checkCounter(cloud, entry)
  return {
    send: () => post(context, `/sandboxes/${sandboxID}/pause`, {}),
    status: 204,
    record: () => void acknowledged.sandboxes.delete(sandboxID),
    async check() {
      assert.equal(await stateOf(cloud, sandboxID), 'paused')
      await resumePaused(context, entry)
      const text = await runScript(cloud, entry.sandbox, 'cat /home/user/before-pause')
      assert.equal(text, `${mark}\n`)
    },
  }
}

async function resumePaused(context: RequestContext, entry: AcknowledgedSandbox): Promise<void> {
  const { sandboxID } = entry.sandbox
  const reply = await post(context, `/sandboxes/${sandboxID}/connect`, { timeout })
  assert.equal(reply.status, 201, reply.text)
  context.acknowledged.sandboxes.set(sandboxID, entry)
  await checkCounter(context.cloud, entry)
}

export async function resume(context: RequestContext): Promise<AcknowledgedRequest> {
  const { cloud } = context
  const entry = pickSandbox(context)
  const { sandboxID } = entry.sandbox
  await checkCounter(cloud, entry)
  const pauseReply = await post(context, `/sandboxes/${sandboxID}/pause`, {})
  assert.equal(pauseReply.status, 204, pauseReply.text)
  return {
    send: () => post(context, `/sandboxes/${sandboxID}/connect`, { timeout }),
    status: 201,
    check: () => checkCounter(cloud, entry),
  }
}

export async function network(context: RequestContext): Promise<AcknowledgedRequest> {
  const { cloud } = context
  const entry = pickSandbox(context)
  const path = `/sandboxes/${entry.sandbox.sandboxID}`
  const rules = { allowOut: [`${randomUUID()}.example`], denyOut: ['0.0.0.0/0'] }
  return {
    send: () => cloud.platform('PUT', `${path}/network`, rules),
    status: 204,
    record: () => void (entry.hasNames = true),
    async check() {
      const { allowOut, denyOut } = Object((await cloud.platform('GET', path)).json).network
      assert.deepEqual({ allowOut, denyOut }, rules)
    },
  }
}

export async function kill(context: RequestContext): Promise<AcknowledgedRequest> {
  const { sandbox } = pickSandbox(context)
  const path = `/sandboxes/${sandbox.sandboxID}`
  return {
    send: () => context.cloud.platform('DELETE', path),
    status: 204,
    record: () => recordKill(context, sandbox),
    async check() {
      const { status } = await post(context, `${path}/connect`, { timeout })
      assert.equal(status, 404)
    },
  }
}
