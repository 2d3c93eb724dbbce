import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'
import {
  build,
  buildStatus,
  requestBuild,
  startBuild,
  waitForBuild,
} from '../../sim/build-client.ts'
import type { RequestedBuild } from '../../sim/build-client.ts'
import { onPostgres } from '../../sim/store.ts'

/** Builds that do not run to their end: replaced, cancelled, timed out, orphaned or deleted. */

test('a newer build request replaces a waiting one with the same tag', async () => {
  await using api = await startApiUnderTest()
  const first = await requestBuild(api, { tags: ['a', 'b'] })
  const other = await requestBuild(api, { tags: ['c'] })
  const second = await requestBuild(api, { tags: ['b', 'd'] })
  const { status, reason } = Object((await buildStatus(api, first)).json)
  assert.equal(status, 'error')
  assert.match(reason.message, /newer build/)
  assert.equal((await startBuild(api, first)).status, 400)
  for (const one of [other, second]) {
    assert.equal(Object((await buildStatus(api, one)).json).status, 'waiting')
  }
})

test('a started build cancels running builds with its tag, on the node as well', async () => {
  await using api = await startApiUnderTest()
  const release = api.node.hold('build')
  const first = await requestBuild(api)
  const other = await requestBuild(api, { tags: ['other'] })
  for (const one of [first, other]) await startBuild(api, one)
  await waitFor('two builds', () => api.node.builds.running === 2)
  const second = await requestBuild(api)
  assert.equal(Object((await buildStatus(api, first)).json).status, 'building')
  await startBuild(api, second)
  const { status, reason } = Object((await buildStatus(api, first)).json)
  assert.equal(status, 'error')
  assert.match(reason.message, /Cancelled/)
  await waitFor('the end of the first', () => {
    return api.node.builds.requests.length === 3 && api.node.builds.running === 2
  })
  release()
  for (const one of [second, other]) assert.equal((await waitForBuild(api, one)).status, 'ready')
  assert.equal(api.node.builds.templates.size, 2)
})

test('a build that is not started within 40 minutes fails', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const old = await requestBuild(api, { tags: ['old'] })
  clock.advance(20 * 60)
  const young = await requestBuild(api, { tags: ['young'] })
  clock.advance(20 * 60 + 1)
  assert.match((await waitForBuild(api, old)).reason.message, /40 minutes/)
  assert.equal(Object((await buildStatus(api, young)).json).status, 'waiting')
})

test('a build that takes longer than an hour is stopped', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  api.node.hold('build')
  // The hour begins when the build leaves the queue of the node.
  api.node.builds.setLog({ message: 'waiting' })
  api.node.builds.setFull(true)
  const waiting = await requestBuild(api, { name: 'waiting' })
  await startBuild(api, waiting)
  await waitFor('the build', () => api.node.builds.running === 1)
  api.node.builds.setFull(false)
  const one = await requestBuild(api, { name: 'working' })
  await startBuild(api, one)
  await waitFor('its beginning', async () => {
    const { json } = await buildStatus(api, one)
    return Object(json).logEntries.length > 0
  })
  clock.advance(60 * 60 + 1)
  assert.match((await waitForBuild(api, one)).reason.message, /longer than an hour/)
  await waitFor('its end on the node', () => api.node.builds.running === 1)
  assert.equal(Object((await buildStatus(api, waiting)).json).status, 'building')
})

test('running builds fail when the server stops, and are canceled on the node', async () => {
  await using api = await startApiUnderTest()
  api.node.hold('build')
  const one = await requestBuild(api)
  await startBuild(api, one)
  await waitFor('the build', () => api.node.builds.running === 1)
  await api.restart()
  assert.equal(api.node.builds.running, 0)
  const { status, reason } = Object((await buildStatus(api, one)).json)
  assert.equal(status, 'error')
  assert.match(reason.message, /build it again/)
})

test('builds of a dead process fail, and their leftovers are removed from the node', async () => {
  await using api = await startApiUnderTest()
  const one = await requestBuild(api)
  await api.withStores(async ({ builds }) => {
    const by = { holder: 'dead process', nodeId: 'sim', nodeTemplateId: 'leftover' }
    await builds.begin(one.buildId, by, new Date())
    api.node.builds.addOrphan('leftover')
  })
  assert.match((await waitForBuild(api, one)).reason.message, /restarted/)
  await waitFor('the sweep', () => api.node.builds.templates.size === 0)
})

test('a running build of another live process is not touched', async () => {
  await using api = await startApiUnderTest()
  const one = await requestBuild(api)
  const later = await requestBuild(api, { tags: ['later'] })
  await api.withStores(async ({ builds, leases }) => {
    const by = { holder: 'other process', nodeId: 'sim', nodeTemplateId: 'in-the-making' }
    await builds.begin(one.buildId, by, new Date())
    await leases.renew({ processId: 'other process', node: '' }, new Date(Date.now() + 60_000))
    // An orphaned build: its failure shows that a pass has run.
    await builds.begin(
      later.buildId,
      { holder: 'nobody', nodeId: 'sim', nodeTemplateId: 'x' },
      new Date(),
    )
    api.node.builds.addOrphan('in-the-making')
    api.node.builds.addOrphan('x')
  })
  await waitForBuild(api, later)
  await waitFor('the sweep', () => !api.node.builds.templates.has('x'))
  assert.equal(Object((await buildStatus(api, one)).json).status, 'building')
  assert.ok(api.node.builds.templates.has('in-the-making'))
})

test('deleting a template deletes its builds, also a running one, but is refused while it is in use', async () => {
  await using api = await startApiUnderTest()
  const { templateId } = await build(api)
  const id = await api.create({ templateID: 'mine' })
  assert.equal((await api.call('DELETE', `/templates/${templateId}`)).status, 400)
  await api.call('DELETE', `/sandboxes/${id}`)
  api.node.hold('build')
  const next = await requestBuild(api)
  await startBuild(api, next)
  await waitFor('the build', () => api.node.builds.running === 1)
  assert.equal((await api.call('DELETE', '/templates/mine')).status, 204)
  await waitFor('its end on the node', () => api.node.builds.running === 0)
  await waitFor('the sweep', () => api.node.builds.templates.size === 0)
  assert.equal((await api.call('GET', `/templates/${templateId}`)).status, 404)
  assert.equal((await buildStatus(api, next)).status, 400)
})

test('a template of the node stays while a snapshot is of it, and goes with that', async () => {
  await using api = await startApiUnderTest()
  await build(api)
  const id = await api.create({ templateID: 'mine' })
  await api.call('POST', `/sandboxes/${id}/snapshots`, { body: { name: 'copy' } })
  await api.call('DELETE', `/sandboxes/${id}`)
  assert.equal((await api.call('DELETE', '/templates/mine')).status, 204)
  // The removal shows that a pass has run.
  await addDeleted(api, 'deleted')
  await waitFor('a sweep', () => !api.node.builds.templates.has('deleted'))
  assert.equal(api.node.builds.templates.size, 1)
  assert.equal((await api.call('DELETE', '/templates/copy')).status, 204)
  await waitFor('the sweep', () => api.node.builds.templates.size === 0)
})

/** Adds a template to the node whose build was deleted from the store. */
async function addDeleted(api: ApiUnderTest, nodeTemplateId: string): Promise<void> {
  const { buildId, templateId } = await requestBuild(api, { name: nodeTemplateId })
  await api.withStores(async ({ builds, templates }) => {
    await builds.begin(buildId, { holder: 'nobody', nodeId: 'sim', nodeTemplateId }, new Date())
    await templates.delete(templateId, undefined)
    api.node.builds.addOrphan(nodeTemplateId)
  })
}

test('a template that the store never had stays on the node: the store may be an older copy', async () => {
  await using api = await startApiUnderTest()
  api.node.builds.addOrphan('newer')
  await addDeleted(api, 'deleted')
  await waitFor('a sweep', () => !api.node.builds.templates.has('deleted'))
  assert.deepEqual([...api.node.builds.templates], ['newer'])
})

test('one process can cancel a build that another one runs', onPostgres, async () => {
  await using api = await startApiUnderTest()
  await using other = await startApiUnderTest({ beside: api })
  const release = api.node.hold('build')
  const first = await requestBuild(api)
  await startBuild(api, first)
  await waitFor('the build', () => api.node.builds.running === 1)
  const second = await requestBuild(other)
  assert.equal((await startBuild(other, second)).status, 202)
  assert.match((await waitForBuild(other, first)).reason.message, /Cancelled/)
  await waitFor('the end of the first', () => {
    return api.node.builds.requests.length === 2 && api.node.builds.running === 1
  })
  release()
  assert.equal((await waitForBuild(api, second)).status, 'ready')
  assert.equal(api.node.builds.templates.size, 1)
})

test(
  'builds of one tag that are started together on two processes do not block each other',
  onPostgres,
  async () => {
    await using api = await startApiUnderTest()
    await using other = await startApiUnderTest({ beside: api })
    const asked: RequestedBuild[] = []
    // Builds wait under different tags, and then get a common one.
    for (const tag of ['a', 'b', 'c', 'd']) asked.push(await requestBuild(api, { tags: [tag] }))
    const [{ templateId } = assert.fail()] = asked
    await api.withStores(async ({ templates }) => {
      for (const { buildId } of asked) await templates.tag(templateId, buildId, ['x'], new Date())
    })
    const starts = asked.map((one, index) => startBuild(index % 2 === 0 ? api : other, one))
    for (const { status, text } of await Promise.all(starts)) assert.equal(status, 202, text)
    const ends = await Promise.all(asked.map((one) => waitForBuild(other, one)))
    const ready = ends.filter(({ status }) => status === 'ready')
    assert.ok(ready.length >= 1)
    await waitFor('the sweep', () => api.node.builds.templates.size === ready.length)
  },
)
