import assert from 'node:assert/strict'
import type { HttpSandbox } from '../../http-cloud.ts'
import type { Reply } from '../../wire.ts'
import { checkCounter } from './acknowledged-state.ts'
import { checkNoTemplate } from './template-works.ts'
import { killSandbox, pickSandbox, post, sandboxIn, timeout } from './work.ts'
import type { Scene, Work } from './work.ts'

export async function fork(scene: Scene): Promise<Work> {
  const known = pickSandbox(scene)
  await checkCounter(scene.cloud, known)
  const { count, sandbox } = known
  return {
    request: () => post(scene, `/sandboxes/${sandbox.sandboxID}/fork`, { timeout, count: 2 }),
    status: 201,
    async check({ json, text }) {
      const results: { readonly sandbox?: HttpSandbox }[] = Object(json)
      const copies = results.flatMap((result) => result.sandbox ?? [])
      assert.equal(copies.length, 2, text)
      for (const copy of copies) await checkCopy(scene, copy, count)
    },
  }
}

export async function snapshot(scene: Scene): Promise<Work> {
  const known = pickSandbox(scene)
  await checkCounter(scene.cloud, known)
  const { count, sandbox } = known
  return {
    request: () => post(scene, `/sandboxes/${sandbox.sandboxID}/snapshots`, {}),
    status: 201,
    enter: (reply) => void scene.acknowledged.snapshots.set(snapshotIn(reply), count),
    async check(reply) {
      const body = { templateID: snapshotIn(reply), timeout }
      const created = await post(scene, '/v2/sandboxes', body)
      assert.equal(created.status, 201, created.text)
      await checkCopy(scene, sandboxIn(created), count)
    },
  }
}

export async function deleteSnapshot(scene: Scene): Promise<Work> {
  const { sandbox } = pickSandbox(scene)
  const created = await post(scene, `/sandboxes/${sandbox.sandboxID}/snapshots`, {})
  assert.equal(created.status, 201, created.text)
  const id = snapshotIn(created)
  return {
    request: () => scene.cloud.platform('DELETE', `/templates/${encodeURIComponent(id)}`),
    status: 204,
    enter: () => void scene.acknowledged.deleted.add(id),
    check: () => checkNoTemplate(scene, id),
  }
}

/** Checks that a copy has the memory of its original, then kills it. */
async function checkCopy(scene: Scene, sandbox: HttpSandbox, count: number): Promise<void> {
  await checkCounter(scene.cloud, { sandbox, count, hasNames: false })
  await killSandbox(scene, sandbox)
}

function snapshotIn({ json }: Reply): string {
  return Object(json).snapshotID
}
