/** A node that an operator declares gone for good: its records end, or continue on other nodes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { createHeartbeats } from '../app/fleet/heartbeats.ts'
import { createMembership } from '../app/fleet/membership.ts'
import { beginKill, move } from '../domain/sandboxes/sandbox.ts'
import type { Sandbox } from '../domain/sandboxes/sandbox.ts'
import { beginResume } from '../domain/sandboxes/sandbox-pause.ts'
import { build, buildStatus } from '../sim/build-client.ts'
import { setUpForgetting } from '../sim/forgetting.ts'
import { listSnapshots, takeSnapshot } from '../sim/snapshot-client.ts'

const none = {
  ...{ endedRunning: 0, endedPaused: 0, finishedKills: 0 },
  ...{ keptPaused: 0, lostSnapshots: 0, lostTemplates: 0 },
}
const gone = 'was lost with its node, which is gone for good'

test('a node that may still work is not forgotten', async () => {
  await using fleet = await setUpForgetting()
  const { api, clock, first } = fleet
  const id = await api.create({ timeout: 3600 })
  const tooEarly = await fleet.forget()
  assert.deepEqual(
    [tooEarly.status, /its last heartbeat was 0 s ago/.test(tooEarly.text)],
    [409, true],
  )
  clock.advance(61)
  const answering = await fleet.forget()
  assert.deepEqual([answering.status, /it answers/.test(answering.text)], [409, true])
  assert.deepEqual([(await fleet.record(id)).state, [...first.running.keys()]], ['running', [id]])
  assert.equal((await fleet.forget('unknown')).status, 404)
  assert.equal((await api.call('POST', '/fleet/members/first/forget')).status, 401)
})

test('a node that was removed and still works is not forgotten', async () => {
  await using fleet = await setUpForgetting()
  const { api, clock } = fleet
  const id = await api.create({ timeout: 3600 })
  await api.withStores(({ fleet: store }) => store.remove('first', clock.now()))
  clock.advance(61)
  const { status, text } = await fleet.forget()
  assert.deepEqual([status, /it answers/.test(text)], [409, true], text)
  assert.equal((await fleet.record(id)).state, 'running')
})

test('running sandboxes and local paused ones end; uploaded ones resume elsewhere, or can be deleted', async () => {
  await using fleet = await setUpForgetting()
  const { api, first, second } = fleet
  const [durable, deleted] = [await api.create({ timeout: 3600 }), await api.create()]
  for (const id of [durable, deleted]) {
    await fleet.pause(id)
    await fleet.untilDurable(id)
  }
  const [running, killing] = [await api.create({ timeout: 3600 }), await api.create()]
  const paused = await api.create({ timeout: 3600 })
  fleet.endUploads()
  await fleet.pause(paused)
  await fleet.lose()
  await fleet.change(killing, (current) => beginKill(current, 'was killed'))

  const sums = await fleet.forgetAll()
  assert.deepEqual(sums, {
    ...{ ...none, endedRunning: 1, endedPaused: 1, finishedKills: 1, keptPaused: 2 },
  })
  const ends = []
  for (const id of [running, paused, killing]) {
    const { state, endReason, isKillRequested } = await fleet.record(id)
    ends.push([state, endReason, isKillRequested])
  }
  assert.deepEqual(ends, [
    ['ended', gone, false],
    ['ended', `${gone}, before its content was uploaded`, false],
    ['ended', 'was killed', false],
  ])
  assert.match((await api.call('GET', `/sandboxes/${running}`)).text, /gone for good/)
  const resume = { body: { timeout: 60 } }
  assert.equal((await api.call('POST', `/sandboxes/${durable}/connect`, resume)).status, 201)
  assert.deepEqual([...second.running.keys()], [durable])
  assert.deepEqual([...first.paused.keys()], [durable, deleted, paused], 'the node keeps its files')

  assert.equal((await api.call('DELETE', `/sandboxes/${deleted}`)).status, 204)
  fleet.clock.advance(301)
  await api.restart()
  await waitFor('the end', async () => (await fleet.record(deleted)).state === 'ended')
})

test('unfinished creates, pauses and resumes of a forgotten node end, or go back to paused', async () => {
  await using fleet = await setUpForgetting()
  const { api } = fleet
  const make = () => api.create({ timeout: 3600 })
  const durable = await make()
  await fleet.pause(durable)
  await fleet.untilDurable(durable)
  const [pausing, copying, local] = [await make(), await make(), await make()]
  fleet.endUploads()
  await fleet.pause(local)
  await fleet.lose()
  const hold = (state: 'pausing' | 'snapshotting') => (current: Sandbox) => ({
    ...move(current, state),
    holder: 'dead process',
  })
  await fleet.change(pausing, hold('pausing'))
  await fleet.change(copying, hold('snapshotting'))
  for (const id of [durable, local]) {
    await fleet.change(id, (current) => beginResume(current, 'dead process'))
  }
  const sums = await fleet.forgetAll()
  assert.deepEqual(sums, { ...none, endedRunning: 2, endedPaused: 1, keptPaused: 1 })
  const states = []
  for (const id of [pausing, copying, local, durable]) states.push((await fleet.record(id)).state)
  assert.deepEqual(states, ['ended', 'ended', 'ended', 'paused'])
  const resume = { body: { timeout: 60 } }
  assert.equal((await api.call('POST', `/sandboxes/${durable}/connect`, resume)).status, 201)
})

test('snapshots and templates that only the node had are lost; those in the object store start elsewhere', async () => {
  await using fleet = await setUpForgetting()
  const { api, first, second } = fleet
  const source = await api.create({ timeout: 3600 })
  const kept = await takeSnapshot(api, source, 'kept')
  for (const id of first.snapshots.keys()) first.durableFiles.add(id)
  const lost = await takeSnapshot(api, source, 'lost')
  // The first build of a team goes to any node that answers.
  second.failAll(Code.Unavailable)
  await api.restart()
  const uploaded = await build(api, { name: 'uploaded' })
  for (const id of first.builds.templates) first.durableFiles.add(id)
  const local = await build(api, { name: 'local' })
  second.failAll(undefined)
  await waitFor('the notes about the uploads', async () => {
    const builds = await api.withStores(async ({ snapshots, templates }) => {
      const page = { limit: 10, after: undefined }
      const listed = await snapshots.list({ teamId: api.ours.teamId }, page)
      const ids = [uploaded.buildId, ...listed.map(({ buildId }) => buildId)]
      return Promise.all(ids.map((id) => templates.findBuildById(id)))
    })
    return builds.filter((one) => one?.isDurable).length === 2
  })
  await fleet.lose()
  const sums = await fleet.forgetAll()
  assert.deepEqual(sums, { ...none, endedRunning: 1, lostSnapshots: 1, lostTemplates: 1 })
  assert.deepEqual(await listSnapshots(api), [kept])
  const failed = Object((await buildStatus(api, local)).json)
  assert.deepEqual(
    [failed.status, /gone for good/.test(JSON.stringify(failed.reason))],
    ['error', true],
  )
  for (const templateID of [lost, 'local']) {
    const { status } = await api.call('POST', '/v2/sandboxes', { body: { templateID } })
    assert.equal(status, 404)
  }
  const owners = await api.withStores(async ({ templates }) =>
    Promise.all([uploaded.buildId].map(async (id) => (await templates.findBuildById(id))?.nodeId)),
  )
  assert.deepEqual(owners, ['second'])
  assert.equal(first.snapshots.size, 2, 'the node keeps its files')
  assert.equal(second.snapshots.size, 0)
})

test('a crash in the middle costs nothing: the api continues by itself, or at the next call', async () => {
  await using fleet = await setUpForgetting({ hasObjects: false })
  const { api, clock } = fleet
  const first = await api.create({ timeout: 3600 })
  await fleet.lose()
  const begun = await fleet.forget()
  assert.deepEqual([begun.status, Object(begun.json).isDone], [200, false], 'apis disconnect first')
  assert.equal((await fleet.record(first)).state, 'running')
  await api.restart()
  clock.advance(301)
  await api.restart()
  await waitFor('the end', async () => (await fleet.record(first)).state === 'ended')
  assert.deepEqual(await fleet.forgetAll(), none)
  assert.deepEqual(await fleet.forgetAll(), none)
})

test('thousands of records end in batches', async () => {
  await using fleet = await setUpForgetting()
  const { api } = fleet
  const id = await api.create({ timeout: 3600 })
  const total = 1_200
  // The node would otherwise report the inserted sandboxes as missing.
  await fleet.lose()
  await api.withStores(async ({ sandboxes }) => {
    const model = (await sandboxes.find(id)) ?? assert.fail('no record')
    for (let made = 1; made < total; made += 1) {
      await sandboxes.insert({ ...model, id: `${id.slice(0, -4)}${1_000 + made}` })
    }
  })
  assert.equal(Object((await fleet.forget()).json).endedRunning, 0)
  fleet.clock.advance(11)
  const counts = []
  for (let calls = 0; calls < 3; calls += 1) {
    const { isDone, endedRunning } = Object((await fleet.forget()).json)
    counts.push([endedRunning, isDone])
  }
  assert.deepEqual(counts, [
    [500, false],
    [500, false],
    [200, true],
  ])
  assert.equal((await fleet.record(id)).state, 'ended')
})

test('a forgotten node never joins again, and its heartbeats and renewals are refused with the reason', async () => {
  await using fleet = await setUpForgetting()
  const { api, clock, first } = fleet
  const running = await api.create({ timeout: 3600 })
  await fleet.lose()
  await fleet.forgetAll()
  clock.advance(3 * 24 * 3600)
  await api.withStores(async ({ fleet: store }) => {
    const membership = createMembership({ store, clock })
    const refused = {
      reason: 'node_forgotten',
      message: /removed for good[^]*empty data directory/,
    }
    const { secret } = await membership.createToken('node')
    const join = (id: string) => membership.join({ secret, role: 'node', id })
    await assert.rejects(join('first'), refused)
    await assert.rejects(membership.check({ role: 'node', id: 'first' }), refused)
    const beat = createHeartbeats({ store, clock })
    await assert.rejects(beat({ id: 'first', address: 'h:1', isStarting: false }), refused)
    assert.deepEqual(await store.listNodes(), [])
    assert.equal(await join('another'), 'another', 'the token is not used up')
  })
  // The test still connects the api to the node, as an api that does not know of the mark yet.
  first.failAll(undefined)
  await waitFor('the kill', () => first.running.size === 0)
  assert.equal((await fleet.record(running)).state, 'ended')
})
