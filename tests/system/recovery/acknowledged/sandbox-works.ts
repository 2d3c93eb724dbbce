import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { envdHeaders } from '../../http-cloud.ts'
import { send } from '../../wire.ts'
import { addCounting, checkCounter, print, stateOf } from './acknowledged-state.ts'
import type { AcknowledgedSandbox } from './acknowledged-state.ts'
import { enterKilled, pickSandbox, post, sandboxIn, timeout } from './work.ts'
import type { Scene, Work } from './work.ts'

export async function create(scene: Scene): Promise<Work> {
  const { acknowledged, cloud } = scene
  const mark = randomUUID()
  const body = { templateID: 'base', timeout, envVars: { MARK: mark }, metadata: { mark } }
  return {
    request: () => post(scene, '/v2/sandboxes', body),
    status: 201,
    async check(reply) {
      const sandbox = sandboxIn(reply)
      const { json } = await cloud.platform('GET', `/sandboxes/${sandbox.sandboxID}`)
      assert.deepEqual(Object(json).metadata, { mark })
      assert.equal(await print(cloud, sandbox, 'echo $MARK'), `${mark}\n`)
      await addCounting(acknowledged, cloud, sandbox)
    },
  }
}

export async function write(scene: Scene): Promise<Work> {
  const { cloud } = scene
  const { sandbox } = pickSandbox(scene)
  const mark = randomUUID()
  const path = `/home/user/${mark}`
  const headers = { ...envdHeaders(sandbox), 'Content-Type': 'application/octet-stream' }
  const call = { method: 'POST', path: `/files?path=${path}&username=root`, headers }
  return {
    request: () => send(cloud.installation.url, { ...call, body: mark }),
    status: 200,
    check: async () => assert.equal(await print(cloud, sandbox, `cat ${path}`), mark),
  }
}

export async function pause(scene: Scene): Promise<Work> {
  const { acknowledged, cloud } = scene
  const known = pickSandbox(scene)
  const { sandboxID } = known.sandbox
  const mark = randomUUID()
  await print(cloud, known.sandbox, `echo ${mark} > /home/user/before-pause`)
  await checkCounter(cloud, known)
  return {
    request: () => post(scene, `/sandboxes/${sandboxID}/pause`, {}),
    status: 204,
    enter: () => void acknowledged.sandboxes.delete(sandboxID),
    async check() {
      assert.equal(await stateOf(cloud, sandboxID), 'paused')
      await resumePaused(scene, known)
      const text = await print(cloud, known.sandbox, 'cat /home/user/before-pause')
      assert.equal(text, `${mark}\n`)
    },
  }
}

async function resumePaused(scene: Scene, known: AcknowledgedSandbox): Promise<void> {
  const { sandboxID } = known.sandbox
  const reply = await post(scene, `/sandboxes/${sandboxID}/connect`, { timeout })
  assert.equal(reply.status, 201, reply.text)
  scene.acknowledged.sandboxes.set(sandboxID, known)
  await checkCounter(scene.cloud, known)
}

export async function resume(scene: Scene): Promise<Work> {
  const { cloud } = scene
  const known = pickSandbox(scene)
  const { sandboxID } = known.sandbox
  await checkCounter(cloud, known)
  const paused = await post(scene, `/sandboxes/${sandboxID}/pause`, {})
  assert.equal(paused.status, 204, paused.text)
  return {
    request: () => post(scene, `/sandboxes/${sandboxID}/connect`, { timeout }),
    status: 201,
    check: () => checkCounter(cloud, known),
  }
}

export async function network(scene: Scene): Promise<Work> {
  const { cloud } = scene
  const known = pickSandbox(scene)
  const path = `/sandboxes/${known.sandbox.sandboxID}`
  const rules = { allowOut: [`${randomUUID()}.example`], denyOut: ['0.0.0.0/0'] }
  return {
    request: () => cloud.platform('PUT', `${path}/network`, rules),
    status: 204,
    enter: () => void (known.hasNames = true),
    async check() {
      const { allowOut, denyOut } = Object((await cloud.platform('GET', path)).json).network
      assert.deepEqual({ allowOut, denyOut }, rules)
    },
  }
}

export async function kill(scene: Scene): Promise<Work> {
  const { sandbox } = pickSandbox(scene)
  const path = `/sandboxes/${sandbox.sandboxID}`
  return {
    request: () => scene.cloud.platform('DELETE', path),
    status: 204,
    enter: () => enterKilled(scene, sandbox),
    async check() {
      const { status } = await post(scene, `${path}/connect`, { timeout })
      assert.equal(status, 404)
    },
  }
}
