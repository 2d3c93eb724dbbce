/** Paused sandboxes whose content is in the object store continue on another node. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '@atoll/kit/clock'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { createRecoverResumes } from '../app/sandboxes/recover-resumes.ts'
import { beginResume } from '../domain/sandboxes/sandbox-pause.ts'
import { lose, setUpMoves as setUp } from '../sim/moves.ts'

test('a paused sandbox of a lost node resumes elsewhere, and the node that comes back forgets it', async () => {
  await using fleet = await setUp()
  const { api, first, second, objects, id } = fleet
  await fleet.pause()
  await fleet.waitUntilDurable()
  await lose(api, first)
  assert.equal((await fleet.resume()).status, 201)
  assert.deepEqual([...second.running.keys()], [id])
  const moved = await fleet.record()
  assert.deepEqual([moved?.nodeId, moved?.state, moved?.generation], ['second', 'running', 2])

  first.failAll(undefined)
  await waitFor('the node to forget it', () => first.paused.size === 0)
  assert.deepEqual([...second.running.keys()], [id])
  assert.ok(objects.size, 'forgetting deletes nothing in the object store')
})

test('content that was not uploaded answers 503 with the reason, stays paused, and resumes later', async () => {
  await using fleet = await setUp({ withObjects: [] })
  const { api, first, id } = fleet
  await fleet.pause()
  await lose(api, first)
  const refused = await fleet.resume()
  assert.equal(refused.status, 503)
  assert.match(refused.text, /was not uploaded/)
  assert.equal((await fleet.record())?.state, 'paused')
  first.failAll(undefined)
  await waitFor('the node', async () => (await fleet.resume()).status === 201)
  assert.deepEqual([...first.running.keys()], [id])
})

test('a durable flag of an earlier pause does not count for a later one', async () => {
  await using fleet = await setUp()
  const { api, first, second, objects, id } = fleet
  await fleet.pause()
  await fleet.waitUntilDurable()
  assert.equal((await fleet.resume()).status, 201)
  // The second pause is not uploaded; the objects of the first one are still there.
  const old = objects.get(`${id}.1`)
  objects.set = () => objects
  await fleet.pause()
  const record = await fleet.record()
  assert.deepEqual([record?.keptGeneration, record?.durableGeneration], [2, undefined])
  assert.ok(old)
  await lose(api, first)
  assert.equal((await fleet.resume()).status, 503)
  assert.equal(second.running.size, 0, 'an older generation never runs')
})

test('content that is gone from the store answers 503 and is never replaced by an older one', async () => {
  await using fleet = await setUp()
  const { api, first, second, objects } = fleet
  await fleet.pause()
  await fleet.waitUntilDurable()
  await lose(api, first)
  const [key, content] = [...objects][0] ?? assert.fail('no content')
  objects.delete(key)
  const refused = await fleet.resume()
  assert.equal(refused.status, 503)
  assert.equal((await fleet.record())?.state, 'paused')
  assert.equal(second.running.size + second.paused.size, 0)
  objects.set(key, content)
  assert.equal((await fleet.resume()).status, 201)
})

test('a failed fetch leaves the sandbox paused, with its content name', async () => {
  await using fleet = await setUp()
  const { api, first, second, id } = fleet
  await fleet.pause()
  await fleet.waitUntilDurable()
  await lose(api, first)
  second.fail('fetch', Code.Internal)
  assert.equal((await fleet.resume()).status, 500)
  const record = await fleet.record()
  assert.deepEqual(
    [record?.state, record?.nodeId, record?.keptGeneration, record?.durableGeneration],
    ['paused', 'first', 1, 1],
  )
  second.fail('fetch', undefined)
  assert.equal((await fleet.resume()).status, 201)
  assert.deepEqual([...second.running.keys()], [id])
})

test('a copy that was fetched for nothing is forgotten', async () => {
  await using fleet = await setUp()
  const { api, first, second } = fleet
  await fleet.pause()
  await fleet.waitUntilDurable()
  await lose(api, first)
  second.fail('fetch', Code.Internal, 'after')
  assert.equal((await fleet.resume()).status, 500)
  await waitFor('the copy to be forgotten', () => second.paused.size === 0)
  assert.equal((await fleet.record())?.nodeId, 'first')
})

test('a paused sandbox of a drained node moves when it is resumed; without an upload it stays', async () => {
  await using fleet = await setUp()
  const { first, second, id, setStatus } = fleet
  await fleet.pause()
  await fleet.waitUntilDurable()
  await setStatus('first', 'draining')
  assert.equal((await fleet.resume()).status, 201)
  assert.deepEqual([...second.running.keys()], [id])
  await waitFor('the drained node to forget it', () => first.paused.size === 0)

  await using local = await setUp({ withObjects: [] })
  await local.pause()
  await local.setStatus('first', 'draining')
  assert.equal((await local.resume()).status, 201)
  assert.deepEqual([...local.first.running.keys()], [local.id])
})

const startedBefore = 'a process that died'

/** Leaves the record as an api does that dies during a resume. */
async function leaveResume(fleet: Awaited<ReturnType<typeof setUp>>, holder: string) {
  await fleet.api.withStores(({ sandboxes }) =>
    sandboxes.update(fleet.id, (current) => beginResume(current, holder)),
  )
}

/** Recovers as the api does once a node is lost. */
async function recover({ api }: Awaited<ReturnType<typeof setUp>>, nodeId: string) {
  await api.withStores(async ({ sandboxes, leases }) => {
    const own = { processId: 'this', isUnderway: () => false }
    await createRecoverResumes({ store: sandboxes, leases, clock: systemClock, ...own })(nodeId)
  })
}

test('a resume whose api and node died is recovered, and the sandbox continues elsewhere', async () => {
  await using fleet = await setUp()
  const { api, first, second, id } = fleet
  await fleet.pause()
  await fleet.waitUntilDurable()
  await lose(api, first)
  await leaveResume(fleet, startedBefore)
  await recover(fleet, 'first')
  const record = await fleet.record()
  assert.deepEqual(
    [record?.state, record?.holder, record?.generation, record?.keptGeneration],
    ['paused', undefined, 2, 1],
  )
  assert.equal((await fleet.resume()).status, 201)
  assert.deepEqual([...second.running.keys()], [id])
  assert.equal((await fleet.record())?.generation, 3)
})

test('a node that died during the resume, and runs the sandbox when it is back, is believed', async () => {
  await using fleet = await setUp()
  const { api, first, id } = fleet
  await fleet.pause()
  await fleet.waitUntilDurable()
  first.fail('resume', Code.Unavailable, 'after')
  first.fail('get', Code.Unavailable)
  assert.equal((await fleet.resume()).status, 503)
  assert.deepEqual([...first.running.keys()], [id])
  await lose(api, first)
  await recover(fleet, 'first')
  assert.equal((await fleet.record())?.state, 'paused')
  first.fail('resume', undefined)
  first.fail('get', undefined)
  first.failAll(undefined)
  await waitFor('the record', async () => (await fleet.record())?.state === 'running')
  assert.deepEqual([...first.running.keys()], [id])
})

test('a resume that another process works on is left alone', async () => {
  await using fleet = await setUp()
  const { api, first } = fleet
  await fleet.pause()
  await lose(api, first)
  await leaveResume(fleet, 'another process')
  await api.withStores(({ leases }) =>
    leases.renew({ processId: 'another process', node: '' }, new Date(Date.now() + 600_000)),
  )
  await recover(fleet, 'first')
  assert.equal((await fleet.record())?.state, 'resuming')
})

test('a paused sandbox whose node has lost its files is fetched by that node', async () => {
  await using fleet = await setUp()
  const { api, first, id } = fleet
  await fleet.pause()
  await fleet.waitUntilDurable()
  first.end(id, undefined, 'silently')
  assert.equal(first.paused.size, 0)
  await api.restart()
  assert.equal((await fleet.record())?.state, 'paused')
  assert.equal((await fleet.resume()).status, 201)
  assert.deepEqual([...first.running.keys()], [id])
})

test('content of the same generation from before a restore does not count as uploaded', async () => {
  await using fleet = await setUp()
  const { api, first, objects, id } = fleet
  // The object store has a pause of this generation that the restored database and node do not know.
  objects.set = (key, content) => {
    Map.prototype.set.call(objects, key, { ...content, keptId: 'before' })
    return objects
  }
  await fleet.pause()
  await waitFor(
    'the ID of the pause',
    async () => (await fleet.record())?.keptId === first.paused.get(id)?.keptId,
  )
  assert.equal((await fleet.record())?.durableGeneration, undefined)
  await lose(api, first)
  assert.equal((await fleet.resume()).status, 503)
})

test('a node that was restored from a backup fetches the newer content', async () => {
  await using fleet = await setUp()
  const { api, first, objects, id } = fleet
  await fleet.pause()
  const older = first.paused.get(id)
  assert.ok(older)
  assert.equal((await fleet.resume()).status, 201)
  await fleet.pause()
  await fleet.waitUntilDurable()
  first.revive(id, older)
  await api.restart()
  const record = await fleet.record()
  assert.deepEqual([record?.keptGeneration, record?.durableGeneration], [2, 2])
  const content = objects.get(`${id}.2`) ?? assert.fail('no content')
  objects.delete(`${id}.2`)
  assert.equal((await fleet.resume()).status, 503, 'older content never runs')
  assert.equal((await fleet.record())?.keptGeneration, 2)
  objects.set(`${id}.2`, content)
  assert.equal((await fleet.resume()).status, 201)
  assert.deepEqual([...first.running.keys()], [id])
})

test('a record that an older version left behind gets the name of the content from the node', async () => {
  await using fleet = await setUp()
  const { api, first, objects, id } = fleet
  await fleet.pause()
  assert.equal((await fleet.resume()).status, 201)
  await fleet.pause()
  objects.delete(`${id}.2`)
  await api.withStores(({ sandboxes }) =>
    sandboxes.update(id, (current) => ({ ...current, keptGeneration: 1, durableGeneration: 1 })),
  )
  await waitFor('the record', async () => {
    const record = await fleet.record()
    return record?.keptGeneration === 2 && record.durableGeneration === undefined
  })
  await lose(api, first)
  assert.equal((await fleet.resume()).status, 503)
})

test('a node with newer content than the record keeps it, and is not blamed', async () => {
  await using fleet = await setUp()
  const { api, first, second, id, nodeStatus } = fleet
  await fleet.pause()
  await fleet.waitUntilDurable()
  const content = first.paused.get(id)
  assert.ok(content)
  const newer = { ...content, keptGeneration: 5, keptId: 'newer' }
  second.revive(id, newer)
  await lose(api, first)
  // Three failures take a node out of placement.
  for (let round = 0; round < 3; round += 1) {
    const refused = await fleet.resume()
    assert.deepEqual([refused.status, /stays paused/.test(refused.text)], [409, true])
  }
  assert.equal(await nodeStatus('second'), 'ready')
  assert.equal((await fleet.record())?.state, 'paused')
  assert.deepEqual([second.paused.get(id), second.running.size], [newer, 0])
})
