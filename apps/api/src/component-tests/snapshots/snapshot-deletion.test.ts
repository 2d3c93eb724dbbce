import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { manualClock } from '../../sim/api.ts'
import {
  codes,
  deleteTemplate,
  listSnapshots,
  startWithSandbox,
  takeSnapshot,
} from '../../sim/snapshot-client.ts'

/** Deleting snapshots by clients, and removing orphaned ones from the node. */

test('a deleted snapshot is gone from the node, the list and for creates', async () => {
  const { api, slug, id } = await startWithSandbox()
  await using _ = api
  const [unnamed, named] = [await takeSnapshot(api, id), await takeSnapshot(api, id, 'name')]
  for (const reference of [unnamed, named]) {
    const { status, text } = await deleteTemplate(api, reference)
    assert.deepEqual([status, text], [204, ''])
    assert.deepEqual(codes(await deleteTemplate(api, reference)), [404, 404])
    const create = { body: { templateID: reference } }
    assert.equal((await api.call('POST', '/v2/sandboxes', create)).status, 404)
  }
  assert.deepEqual([api.node.snapshots.size, await listSnapshots(api)], [0, []])
  assert.equal(await takeSnapshot(api, id, 'name'), `${slug}/name:default`)
})

test('deleting one tag leaves the snapshots of others; the name alone takes all', async () => {
  const clock = manualClock()
  const { api, slug, id } = await startWithSandbox({ clock })
  await using _ = api
  for (const name of ['x', 'x', 'x:v1', 'x:v2']) {
    await takeSnapshot(api, id, name)
    clock.advance(1)
  }
  assert.equal((await deleteTemplate(api, 'x:v1')).status, 204)
  const left = await listSnapshots(api)
  assert.deepEqual(left.slice(0, 2), [`${slug}/x:v2`, `${slug}/x:default`])
  assert.deepEqual([left.length, api.node.snapshots.size], [3, 3])
  assert.equal((await deleteTemplate(api, left[2] ?? '')).status, 204)
  assert.deepEqual(await listSnapshots(api), left.slice(0, 2))
  assert.deepEqual(codes(await deleteTemplate(api, 'x:v9')), [404, 404])
  assert.equal((await deleteTemplate(api, 'x')).status, 204)
  assert.deepEqual([api.node.snapshots.size, await listSnapshots(api)], [0, []])
})

test('a snapshot cannot be deleted while sandboxes created from it run or are paused: 400', async () => {
  const { api, id } = await startWithSandbox()
  await using _ = api
  const reference = await takeSnapshot(api, id, 'used')
  const copy = await api.create({ templateID: reference })
  for (const pause of [false, true]) {
    if (pause) await api.call('POST', `/sandboxes/${copy}/pause`)
    const reply = await deleteTemplate(api, reference)
    assert.deepEqual(codes(reply), [400, 400])
    assert.match(Object(reply.json).message, /running or paused sandboxes use it/)
  }
  await api.call('DELETE', `/sandboxes/${copy}`)
  assert.equal((await deleteTemplate(api, reference)).status, 204)
})

test('a team deletes only its own snapshots: 403 for base and foreign ones, 404 for unknown, 400 for malformed IDs', async () => {
  const { api, id } = await startWithSandbox()
  await using _ = api
  const reference = await takeSnapshot(api, id, 'ours')
  const base = await deleteTemplate(api, 'base')
  assert.deepEqual(codes(base), [403, 403])
  assert.match(Object(base.json).message, /belongs to the installation/)
  assert.deepEqual(codes(await deleteTemplate(api, reference, api.theirs.apiKey)), [403, 403])
  for (const bad of ['a b', 'a/b/c', 'x'.repeat(200)]) {
    assert.deepEqual(codes(await deleteTemplate(api, bad)), [400, 400], bad)
  }
  assert.deepEqual(codes(await deleteTemplate(api, 'unknown')), [404, 404])
  assert.deepEqual(await listSnapshots(api), [reference])
})

test('a snapshot that the node cannot delete yet is deleted later', async () => {
  const { api, id } = await startWithSandbox()
  await using _ = api
  const reference = await takeSnapshot(api, id)
  api.node.fail('deleteSnapshot', Code.Unavailable)
  assert.equal((await deleteTemplate(api, reference)).status, 204)
  assert.deepEqual([api.node.snapshots.size, await listSnapshots(api)], [1, []])
  api.node.fail('deleteSnapshot', undefined)
  await api.restart()
  await waitFor('the node', () => api.node.snapshots.size === 0)
})

test('snapshots that were deleted, or of a dead process, are removed, and others are not', async () => {
  const { api, id } = await startWithSandbox()
  await using _ = api
  const reference = await takeSnapshot(api, id)
  await api.withStores(async ({ snapshots }) => {
    // Of a time that the store does not know: it was restored to an older state.
    api.node.addOrphanSnapshot('newer', id)
    for (const left of ['left', 'deleted']) {
      api.node.addOrphanSnapshot(left, id)
      await snapshots.insert({
        id: left,
        nodeId: 'sim',
        teamId: api.ours.teamId,
        sandboxId: id,
        holder: 'a dead process',
        sizeBytes: undefined,
        buildId: undefined,
        createdAt: new Date(),
      })
    }
    await snapshots.delete('deleted')
  })
  await waitFor('the sweep', () => api.node.snapshots.size === 2)
  assert.ok(api.node.snapshots.has('newer'))
  assert.deepEqual(await listSnapshots(api), [reference])
  await api.create({ templateID: reference })
  const unpublished = await api.withStores(({ snapshots }) => snapshots.listUnpublished())
  assert.deepEqual(unpublished, [])
})
