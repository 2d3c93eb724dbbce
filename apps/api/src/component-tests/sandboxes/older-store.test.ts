/** A store that is older than a pause never makes the paused sandbox go; requests for an end are never forgotten. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newSandboxId } from '@atoll/kit/id'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { end } from '../../domain/sandboxes/sandbox.ts'
import type { Sandbox } from '../../domain/sandboxes/sandbox.ts'
import { startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'

async function setUpPaused() {
  const api = await startApiUnderTest()
  const id = await api.create({ timeout: 3600 })
  const pause = async () => {
    assert.equal((await api.call('POST', `/sandboxes/${id}/pause`)).status, 204)
  }
  const resume = () => api.call('POST', `/sandboxes/${id}/connect`, { body: { timeout: 60 } })
  /** Takes the record back to how it was before the pause. */
  const restore = (change: (sandbox: Sandbox) => Sandbox) =>
    api.withStores(({ sandboxes }) =>
      sandboxes.update(id, (current) => {
        const kept = { kept: undefined, keptBytes: undefined, keptGeneration: undefined }
        const content = { ...kept, keptId: undefined, storedGeneration: undefined }
        return change({ ...current, ...content, state: 'running' })
      }),
    )
  await pause()
  return {
    ...{ api, id, pause, resume, restore, paused: () => [...api.node.paused.keys()] },
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  }
}

/** The reconciler ends running sandboxes without a record: the second end shows that a whole pass is over. */
async function awaitPass(api: ApiUnderTest): Promise<void> {
  for (const stray of [newSandboxId(), newSandboxId()]) {
    api.node.addOrphan(stray)
    await api.restart()
    await waitFor('a pass', () => !api.node.running.has(stray))
  }
}

test('a sandbox that was paused since is kept when an older record reaches its timeout', async () => {
  await using setup = await setUpPaused()
  const { id, restore, resume } = setup
  await restore((running) => ({ ...running, endAt: new Date(Date.now() - 1000) }))
  await awaitPass(setup.api)
  assert.deepEqual(setup.paused(), [id])
  await waitFor('the record', async () => {
    const { json } = await setup.api.call('GET', `/sandboxes/${id}`)
    return Object(json).state === 'paused'
  })
  assert.equal((await resume()).status, 201)
})

test('a kill by a timeout that was begun on an older record is taken back', async () => {
  await using setup = await setUpPaused()
  const { id, restore, resume } = setup
  await resume()
  await setup.pause()
  await restore((running) => ({
    ...{ ...running, generation: 1, state: 'killing' },
    endReason: 'reached the end of its timeout',
  }))
  await waitFor('the record', async () => (await resume()).status === 201)
  assert.equal(setup.api.node.running.get(id)?.generation, 3)
})

test('a sandbox that was paused since is kept when an older record says that it is being created', async () => {
  await using setup = await setUpPaused()
  await setup.restore((running) => {
    const unknown = { envdVersion: undefined, startedAt: undefined, endAt: undefined }
    return { ...running, ...unknown, state: 'creating', holder: 'gone' }
  })
  await awaitPass(setup.api)
  await waitFor('the end of the record', () =>
    setup.api.withStores(async ({ sandboxes }) => {
      return (await sandboxes.find(setup.id))?.state === 'ended'
    }),
  )
  await awaitPass(setup.api)
  assert.deepEqual(setup.paused(), [setup.id])
})

test('a paused sandbox is kept when its record ended by itself in the same generation', async () => {
  await using setup = await setUpPaused()
  await setup.restore((running) => end(running, new Date(), 'node lost'))
  await awaitPass(setup.api)
  assert.deepEqual(setup.paused(), [setup.id])
})

test('a paused sandbox that its node had lost is kept when it is back, also after a resume that failed', async () => {
  await using setup = await setUpPaused()
  const { api, id, resume } = setup
  const content = api.node.paused.get(id) ?? assert.fail('it is not paused')
  api.node.end(id, '', 'silently')
  const { status } = await resume()
  assert.notEqual(status, 201)
  await api.restart()
  assert.equal((await api.call('GET', `/sandboxes/${id}`)).status, 404)
  api.node.revive(id, content)
  await awaitPass(api)
  assert.deepEqual(setup.paused(), [id])
})

test('content from before a later run that has ended is deleted', async () => {
  await using setup = await setUpPaused()
  const { api, id, resume } = setup
  const content = api.node.paused.get(id) ?? assert.fail('it is not paused')
  await resume()
  api.node.end(id, 'died')
  await waitFor('the end', async () => (await api.call('GET', `/sandboxes/${id}`)).status === 404)
  api.node.revive(id, content)
  await waitFor('the deletion', () => api.node.paused.size === 0)
})

test('a sandbox that was deleted while its record on the node could not be read goes once it can', async () => {
  for (const generation of [1, 7]) {
    await using setup = await setUpPaused()
    const { api, id } = setup
    const content = api.node.paused.get(id) ?? assert.fail('it is not paused')
    api.node.quarantine(id)
    assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 204)
    // A real node keeps the files.
    api.node.revive(id, { ...content, generation })
    await api.restart()
    await waitFor('the deletion', () => api.node.paused.size === 0)
  }
})

test('a paused sandbox that was deleted while its node was away goes when it is back', async () => {
  await using setup = await setUpPaused()
  const { api, id } = setup
  const content = api.node.paused.get(id) ?? assert.fail('it is not paused')
  api.node.failAll(Code.Unavailable)
  assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 204)
  // The store may be older than what the node has.
  api.node.revive(id, { ...content, generation: 7 })
  api.node.failAll(undefined)
  await waitFor('the deletion', () => api.node.paused.size === 0)
  await waitFor('the reason', async () =>
    (await api.call('GET', `/sandboxes/${id}`)).text.includes('was killed'),
  )
})

test('a request deletes a sandbox whose kill by a timeout has begun', async () => {
  await using setup = await setUpPaused()
  const { api, id, restore } = setup
  api.node.failAll(Code.Unavailable)
  await restore((running) => ({
    ...{ ...running, state: 'killing' },
    endReason: 'reached the end of its timeout',
  }))
  assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 204)
  api.node.failAll(undefined)
  await waitFor('the deletion', () => api.node.paused.size === 0)
})

test('a running sandbox whose timeout passes while its node is away is killed when it is back', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create({ timeout: 3600 })
  api.node.failAll(Code.Unavailable)
  await api.withStores(({ sandboxes }) =>
    sandboxes.update(id, (current) => ({ ...current, endAt: new Date(Date.now() - 1000) })),
  )
  await waitFor('the end for the client', async () => {
    return (await api.call('GET', `/sandboxes/${id}`)).status === 404
  })
  api.node.failAll(undefined)
  await waitFor('the kill', () => api.node.running.size === 0)
})
