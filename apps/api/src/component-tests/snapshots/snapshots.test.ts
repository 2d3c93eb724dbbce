import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import {
  codes,
  listSnapshots,
  snapshot,
  startWithSandbox,
  takeSnapshot,
} from '../../sim/snapshot-client.ts'
import { onPostgres } from '../../sim/store.ts'

/** Snapshots: create, name, list and use. */

test('a snapshot that the node cannot read is refused with its reason, and nothing is left', async () => {
  const { api, id } = await startWithSandbox()
  await using _ = api
  const snapshotId = await takeSnapshot(api, id)
  api.node.failCreates(Code.FailedPrecondition)
  const body = { templateID: snapshotId }
  const { status, json } = await api.call('POST', '/v2/sandboxes', { body })
  assert.equal(status, 400)
  assert.match(Object(json).message, /cannot create a sandbox from the snapshot: simulated failure/)
  assert.deepEqual([...api.node.running.keys()], [id])
})

test('a snapshot leaves its sandbox running with its time, and can be used by its id', async () => {
  const clock = manualClock()
  const { api, id } = await startWithSandbox({ clock })
  await using _ = api
  const before = (await api.call('GET', `/sandboxes/${id}`)).json
  clock.advance(10)
  const { status, json } = await snapshot(api, id)
  assert.equal(status, 201)
  const { snapshotID, names } = Object(json)
  assert.match(snapshotID, /^[a-z0-9]{20}:default$/)
  assert.deepEqual(names, [])
  assert.deepEqual((await api.call('GET', `/sandboxes/${id}`)).json, before)
  const [kept] = api.node.snapshots.keys()
  for (const reference of [snapshotID, snapshotID.replace(':default', '')]) {
    const copy = await api.create({ templateID: reference, envVars: { A: '1' } })
    const { snapshotId, boots, envVars } = api.node.running.get(copy) ?? assert.fail()
    assert.deepEqual([snapshotId, boots, envVars], [kept, 1, { A: '1' }])
    const { templateID, cpuCount, alias } = Object(
      (await api.call('GET', `/sandboxes/${copy}`)).json,
    )
    assert.deepEqual([`${templateID}:default`, cpuCount, alias], [snapshotID, 2, undefined])
  }
  await api.restart()
  assert.deepEqual(await listSnapshots(api), [snapshotID])
  assert.equal(api.node.snapshots.size, 1)
})

test('a name stands in the namespace of the team, and another use of it adds a build', async () => {
  const clock = manualClock()
  const { api, slug, id } = await startWithSandbox({ clock })
  await using _ = api
  const first = await snapshot(api, id, 'My-Env')
  assert.deepEqual(
    [first.status, first.json],
    [201, { snapshotID: `${slug}/my-env:default`, names: [`${slug}/my-env`] }],
  )
  const copyOf = async (templateID: string) =>
    api.node.running.get(await api.create({ templateID }))?.snapshotId
  const [one] = api.node.snapshots.keys()
  for (const reference of [
    'my-env',
    'my-env:default',
    `${slug}/my-env`,
    `${slug}/my-env:default`,
  ]) {
    assert.equal(await copyOf(reference), one, reference)
  }
  clock.advance(1)
  assert.equal(await takeSnapshot(api, id, `${slug}/my-env`), `${slug}/my-env:default`)
  clock.advance(1)
  assert.equal(await takeSnapshot(api, id, 'my-env:v2.0'), `${slug}/my-env:v2.0`)
  const [, two, three] = api.node.snapshots.keys()
  assert.deepEqual([await copyOf('my-env'), await copyOf('my-env:v2.0')], [two, three])
  const listed = await listSnapshots(api)
  assert.deepEqual(listed.slice(0, 2), [`${slug}/my-env:v2.0`, `${slug}/my-env:default`])
  // A snapshot whose tag has moved is still listed by its build ID.
  assert.match(listed[2] ?? '', /\/my-env:[0-9a-f-]{36}$/)
  assert.equal(await copyOf(listed[2] ?? ''), one)
  const templates = Object((await api.call('GET', '/templates')).json)
  assert.deepEqual([templates.length, templates[0].aliases], [1, ['base']])
})

test('names are of one team: others do not find them, and may have the same', async () => {
  const { api, slug, id } = await startWithSandbox()
  await using _ = api
  await takeSnapshot(api, id, 'shared')
  const theirs = { 'x-api-key': api.theirs.apiKey }
  const create = (templateID: string) =>
    api.call('POST', '/v2/sandboxes', { headers: theirs, body: { templateID } })
  const [byId] = await listSnapshots(api)
  for (const reference of ['shared', `${slug}/shared`, byId ?? '']) {
    assert.equal((await create(reference)).status, 404)
    assert.deepEqual((await api.call('GET', '/snapshots', { headers: theirs })).json, [])
  }
  const their = Object((await create('base')).json).sandboxID
  const path = `/sandboxes/${their}/snapshots`
  const same = await api.call('POST', path, { headers: theirs, body: { name: 'shared' } })
  assert.equal(same.status, 201)
  assert.notEqual(Object(same.json).snapshotID, byId)
  const foreign = await api.call('POST', path, { headers: theirs, body: { name: `${slug}/x` } })
  assert.deepEqual(codes(foreign), [400, 400])
  assert.match(Object(foreign.json).message, /namespace/)
})

test('a snapshot of a sandbox that was made of a snapshot is one as well', async () => {
  const { api, id } = await startWithSandbox()
  await using _ = api
  const first = await takeSnapshot(api, id)
  const copy = await api.create({ templateID: first })
  const second = await takeSnapshot(api, copy, 'second')
  const third = await api.create({ templateID: second })
  assert.equal(api.node.running.get(third)?.templateId, 'base')
  assert.equal(api.node.running.get(third)?.snapshotId, [...api.node.snapshots.keys()][1])
})

const badNames: readonly (readonly [unknown, RegExp])[] = [
  ['', /name is malformed/],
  ['a b', /name is malformed/],
  ['a/b/c', /name is malformed/],
  ['a:', /name is malformed/],
  ['x'.repeat(129), /name is malformed/],
  ['other/x', /namespace/],
  [`x:${crypto.randomUUID()}`, /looks like a build ID/],
  [5, /body\.name/],
  [null, /body\.name/],
  ['\0', /body\.name/],
]

test('bad names are refused, and nothing is copied', async () => {
  const { api, id } = await startWithSandbox()
  await using _ = api
  for (const [name, message] of badNames) {
    const reply = await api.call('POST', `/sandboxes/${id}/snapshots`, { body: { name } })
    assert.deepEqual(codes(reply), [400, 400], String(name))
    assert.match(Object(reply.json).message, message)
  }
  const missing = await api.call('POST', `/sandboxes/${id}/snapshots`)
  assert.deepEqual(codes(missing), [400, 400])
  assert.equal(api.node.begun('snapshot'), 0)
})

test('the id of a template cannot be the name of a snapshot: 409', async () => {
  const { api, id } = await startWithSandbox()
  await using _ = api
  const [templateId] = (await takeSnapshot(api, id)).split(':')
  assert.deepEqual(codes(await snapshot(api, id, templateId)), [409, 409])
})

test('a snapshot of a paused or unknown sandbox is 404, and during a pause 409', async () => {
  const { api, id } = await startWithSandbox()
  await using _ = api
  assert.deepEqual(codes(await snapshot(api, 'iunknown')), [404, 404])
  const release = api.node.hold('pause')
  const pausing = api.call('POST', `/sandboxes/${id}/pause`)
  await waitFor('the pause', () => api.node.begun('pause') === 1)
  assert.deepEqual(codes(await snapshot(api, id)), [409, 409])
  release()
  assert.equal((await pausing).status, 204)
  assert.deepEqual(codes(await snapshot(api, id)), [404, 404])
  assert.equal(api.node.begun('snapshot'), 0)
})

test('a sandbox that is being copied is shown as running; a connect waits, other operations are 409', async () => {
  const { api, id } = await startWithSandbox()
  await using _ = api
  const release = api.node.hold('snapshot')
  const copying = snapshot(api, id)
  await waitFor('the copy', () => api.node.begun('snapshot') === 1)
  assert.equal(Object((await api.call('GET', `/sandboxes/${id}`)).json).state, 'running')
  const running = await api.call('GET', '/v2/sandboxes?state=running')
  assert.equal(running.headers.get('x-total-running'), '1')
  for (const [path, body] of [
    ['timeout', { timeout: 5 }],
    ['refreshes', { duration: 5 }],
    ['pause', {}],
    ['resume', {}],
    ['snapshots', {}],
    ['fork', {}],
  ] as const) {
    assert.deepEqual(
      codes(await api.call('POST', `/sandboxes/${id}/${path}`, { body })),
      [409, 409],
      path,
    )
  }
  const connecting = api.call('POST', `/sandboxes/${id}/connect`, { body: { timeout: 5 } })
  release()
  assert.deepEqual([(await copying).status, (await connecting).status], [201, 200])
})

for (const [code, status] of [
  [Code.Internal, 500],
  [Code.ResourceExhausted, 507],
  [Code.Unavailable, 503],
] as const) {
  test(`a copy that the node fails with ${Code[code]} is ${status}, and leaves nothing`, async () => {
    const { api, id } = await startWithSandbox()
    await using _ = api
    for (const when of [undefined, 'after'] as const) {
      api.node.fail('snapshot', code, when)
      assert.deepEqual(codes(await snapshot(api, id, 'name')), [status, status])
      assert.deepEqual([api.node.snapshots.size, await listSnapshots(api)], [0, []])
      assert.equal(Object((await api.call('GET', `/sandboxes/${id}`)).json).state, 'running')
    }
    api.node.fail('snapshot', undefined)
    await takeSnapshot(api, id, 'name')
  })
}

test('a sandbox killed while it is copied is gone, and so is the copy', async () => {
  const { api, id } = await startWithSandbox()
  await using _ = api
  const release = api.node.hold('snapshot')
  const copying = snapshot(api, id)
  await waitFor('the copy', () => api.node.begun('snapshot') === 1)
  assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 204)
  release()
  assert.equal((await copying).status, 404)
  assert.deepEqual(
    [api.node.running.size, api.node.snapshots.size, await listSnapshots(api)],
    [0, 0, []],
  )
})

for (const autoPause of [true, false]) {
  test(`a sandbox whose time ends while it is copied is ${autoPause ? 'paused' : 'killed'} after it`, async () => {
    const clock = manualClock()
    await using api = await startApiUnderTest({ clock })
    const id = await api.create({ timeout: 10, autoPause })
    const release = api.node.hold('snapshot')
    const copying = snapshot(api, id)
    await waitFor('the copy', () => api.node.begun('snapshot') === 1)
    clock.advance(60)
    await api.create() // triggers an expiry pass
    assert.ok(api.node.running.has(id))
    release()
    assert.equal((await copying).status, 201)
    await waitFor('its end', () => !api.node.running.has(id))
    assert.equal(api.node.paused.has(id), autoPause)
    assert.equal(api.node.snapshots.size, 1)
  })
}

test('pages list each snapshot once, newest first, by sandbox and by name', async () => {
  const clock = manualClock()
  const { api, slug, id } = await startWithSandbox({ clock })
  await using _ = api
  const other = await api.create()
  const taken: string[] = []
  for (const [sandbox, name] of [
    [id, 'one'],
    [id, undefined],
    [other, 'two:v1'],
    [other, 'two:v2'],
    [id, undefined],
  ] as const) {
    clock.advance(taken.length % 2)
    taken.push(await takeSnapshot(api, sandbox, name))
  }
  const all = await listSnapshots(api)
  assert.deepEqual(all.toSorted(), taken.toSorted())
  for (const limit of [1, 2, 3, 5]) {
    const seen: string[] = []
    let token: string | null = ''
    while (token !== null) {
      const query: string = `?limit=${limit}${token && `&nextToken=${token}`}`
      const reply = await api.call('GET', `/snapshots${query}`)
      for (const { snapshotID } of Object(reply.json)) seen.push(snapshotID)
      token = reply.headers.get('x-next-token')
    }
    assert.deepEqual(seen, all)
  }
  const ofOther = [`${slug}/two:v2`, `${slug}/two:v1`]
  assert.deepEqual((await listSnapshots(api, `?sandboxID=${other}`)).toSorted(), ofOther.toSorted())
  assert.deepEqual((await listSnapshots(api, '?name=two')).toSorted(), ofOther.toSorted())
  assert.deepEqual(await listSnapshots(api, '?name=two:v1'), [`${slug}/two:v1`])
  assert.deepEqual(await listSnapshots(api, `?name=${encodeURIComponent(`${slug}/one`)}`), [
    `${slug}/one:default`,
  ])
  for (const query of ['?name=unknown', '?name=two:v9', '?name=base', '?sandboxID=iunknown']) {
    assert.deepEqual(await listSnapshots(api, query), [], query)
  }
})

for (const [query, message] of [
  ['sandboxID=a_b', /query\.sandboxID: Invalid sandbox ID/],
  ['name=a%20b', /name is malformed/],
  ['limit=0', /query\.limit/],
  ['nextToken=garbage', /Invalid next token/],
] as const) {
  test(`GET /snapshots?${query} is refused`, async () => {
    await using api = await startApiUnderTest()
    const reply = await api.call('GET', `/snapshots?${query}`)
    assert.deepEqual(codes(reply), [400, 400])
    assert.match(Object(reply.json).message, message)
  })
}

test('without memory on the node copies are of files alone, and boot', async () => {
  const { api, id } = await startWithSandbox()
  await using _ = api
  api.node.dropMemorySupport()
  const copy = await api.create({ templateID: await takeSnapshot(api, id) })
  assert.equal(api.node.running.get(copy)?.boots, 2)
})

test('a process does not touch a sandbox that another process is copying', onPostgres, async () => {
  const { api, id } = await startWithSandbox()
  await using first = api
  await using second = await startApiUnderTest({ beside: first })
  const release = first.node.hold('snapshot')
  const copying = snapshot(first, id, 'x')
  await waitFor('the copy', () => first.node.begun('snapshot') === 1)
  await second.restart()
  release()
  const { status, json } = await copying
  assert.equal(status, 201)
  await second.restart()
  assert.equal(first.node.snapshots.size, 1)
  await second.create({ templateID: Object(json).snapshotID })
})
