/** A forgotten node has uploaded contents while no api reached it: another node is asked before anything ends. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Code } from '@connectrpc/connect'
import { build } from '../sim/build-client.ts'
import { setUpForgetting } from '../sim/forgetting.ts'
import { listSnapshots, takeSnapshot } from '../sim/snapshot-client.ts'

const none = {
  ...{ endedRunning: 0, endedPaused: 0, finishedKills: 0 },
  ...{ keptPaused: 0, lostSnapshots: 0, lostTemplates: 0 },
}

test('a paused sandbox, a snapshot and a template with unnoticed uploads stay, and start elsewhere', async () => {
  await using fleet = await setUpForgetting()
  const { api, first, second, objects } = fleet
  const source = await api.create({ timeout: 3600 })
  const snapshot = await takeSnapshot(api, source, 'snapshot')
  // The first build of a team goes to any node that answers.
  second.failAll(Code.Unavailable)
  await api.restart()
  await build(api, { name: 'template' })
  second.failAll(undefined)
  const [uploaded, local] = [await api.create({ timeout: 3600 }), await api.create()]
  for (const id of [uploaded, local]) await fleet.pauseLocally(id)
  await fleet.lose()
  fleet.uploadUnseen()
  for (const key of objects.keys()) if (key.startsWith(local)) objects.delete(key)

  const sums = await fleet.forgetAll()
  assert.deepEqual(sums, { ...none, endedRunning: 1, endedPaused: 1, keptPaused: 1 })
  assert.equal((await fleet.record(local)).state, 'ended')
  assert.deepEqual(await listSnapshots(api), [snapshot])
  const resume = { body: { timeout: 60 } }
  assert.equal((await api.call('POST', `/sandboxes/${uploaded}/connect`, resume)).status, 201)
  for (const templateID of [snapshot, 'template']) {
    const { status, text } = await api.call('POST', '/v2/sandboxes', { body: { templateID } })
    assert.equal(status, 201, text)
  }
  assert.deepEqual([second.running.size, first.paused.size], [3, 2])
})

test('nothing ends while the object store cannot be asked', async () => {
  await using fleet = await setUpForgetting()
  const { api, clock, second, objects } = fleet
  const [paused, running] = [await api.create({ timeout: 3600 }), await api.create()]
  const snapshot = await takeSnapshot(api, running, 'snapshot')
  await fleet.pauseLocally(paused)
  await fleet.lose()
  fleet.uploadUnseen()
  assert.equal((await fleet.forget()).status, 200)
  clock.advance(11)

  const outages = [
    (isDown: boolean) => void (objects.isDown = isDown),
    (isDown: boolean) => second.fail('findStored', isDown ? Code.Unavailable : undefined),
    (isDown: boolean) => second.fail('findStored', isDown ? Code.Internal : undefined),
    (isDown: boolean) => second.failAll(isDown ? Code.Unavailable : undefined),
  ]
  for (const setDown of outages) {
    await fleet.untilReached()
    setDown(true)
    const { status, text } = await fleet.forget()
    assert.deepEqual([status, /Nothing was ended.*is not known/.test(text)], [503, true], text)
    const states = [(await fleet.record(paused)).state, (await fleet.record(running)).state]
    assert.deepEqual(states, ['paused', 'running'])
    assert.deepEqual(await listSnapshots(api), [snapshot])
    setDown(false)
  }
  assert.deepEqual(await fleet.forgetAll(), { ...none, endedRunning: 1, keptPaused: 1 })
})

test('a node of an older release cannot be asked: then the database decides', async () => {
  await using fleet = await setUpForgetting()
  const { api, second } = fleet
  const [paused, running] = [await api.create({ timeout: 3600 }), await api.create()]
  await takeSnapshot(api, running, 'snapshot')
  await fleet.pauseLocally(paused)
  await fleet.lose()
  fleet.uploadUnseen()
  second.fail('findStored', Code.Unimplemented)
  const sums = await fleet.forgetAll()
  assert.deepEqual(sums, { ...none, endedRunning: 1, endedPaused: 1, lostSnapshots: 1 })
  assert.equal(second.begun('findStored'), 1)
})

test('hundreds of uploads are asked for in parts', async () => {
  await using fleet = await setUpForgetting()
  const { api, first, second, objects } = fleet
  const id = await api.create({ timeout: 3600 })
  await fleet.pauseLocally(id)
  await fleet.lose()
  fleet.uploadUnseen()
  const [content, total] = [first.paused.get(id) ?? assert.fail('not paused'), 450]
  const model = await fleet.record(id)
  await api.withStores(async ({ sandboxes }) => {
    for (let made = 1; made < total; made += 1) {
      const copy = `${id.slice(0, -4)}${1_000 + made}`
      await sandboxes.insert({ ...model, id: copy })
      objects.set(`${copy}.${content.keptGeneration}`, content)
    }
  })
  assert.deepEqual(await fleet.forgetAll(), { ...none, keptPaused: total })
  assert.equal(second.begun('findStored'), 3)
})
