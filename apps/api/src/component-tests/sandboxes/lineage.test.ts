import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'

suite('the family of a sandbox', () => {
  let api: ApiUnderTest
  let root: string
  let fork: string
  let copy: string
  let snapshotId: string
  before(async () => {
    api = await startApiUnderTest()
    root = await api.create({ timeout: 3600 })
    const forked = await api.call('POST', `/sandboxes/${root}/fork`, { body: { timeout: 3600 } })
    fork = Object(forked.json)[0].sandbox.sandboxID
    const saved = await api.call('POST', `/sandboxes/${fork}/snapshots`, { body: { name: 'kept' } })
    snapshotId = Object(saved.json).snapshotID
    copy = await api.create({ templateID: snapshotId, timeout: 3600 })
  })
  after(() => api[Symbol.asyncDispose]())

  const lineage = (id: string, headers?: Record<string, string>) =>
    api.call('GET', `/sandboxes/${id}/lineage`, headers && { headers })
  const relations = (json: unknown) =>
    Object(json).sandboxes.map(
      ({ sandboxID, state, parent }: { sandboxID: string; state: string; parent?: object }) => [
        sandboxID,
        state,
        parent,
      ],
    )

  test('has parents, forks and snapshots, seen from every member', async () => {
    const expected = [
      [root, 'running', undefined],
      [fork, 'running', { sandboxID: root, kind: 'fork' }],
      [copy, 'running', { sandboxID: fork, kind: 'snapshot' }],
    ]
    for (const id of [root, fork, copy]) {
      const { status, json } = await lineage(id)
      assert.equal(status, 200)
      assert.deepEqual(new Set(relations(json)), new Set(expected))
      assert.equal(Object(json).isComplete, true)
      const [snapshot, ...others] = Object(json).snapshots
      assert.deepEqual([snapshot.snapshotID, snapshot.sandboxID, others], [snapshotId, fork, []])
    }
    const detail = await api.call('GET', `/sandboxes/${copy}`)
    assert.deepEqual(Object(detail.json).parent, { sandboxID: fork, kind: 'snapshot' })
  })

  test('keeps an ended sandbox with the reason, and survives a restart', async () => {
    await api.call('DELETE', `/sandboxes/${fork}`)
    await api.restart()
    const { json } = await lineage(fork)
    const ended = Object(json).sandboxes.find(({ sandboxID }: { sandboxID: string }) => {
      return sandboxID === fork
    })
    assert.deepEqual([ended.state, ended.endReason], ['ended', 'was killed'])
  })

  test('is hidden from another team', async () => {
    const { status } = await lineage(root, { 'x-api-key': api.theirs.apiKey })
    assert.equal(status, 404)
  })

  test('a parent whose record is gone keeps its ID', async () => {
    await api.withStores(async ({ sandboxes }) => {
      await sandboxes.deleteEndedBefore(new Date(Date.now() + 60_000), 100)
    })
    const { json } = await lineage(copy)
    assert.deepEqual(relations(json), [[copy, 'running', { sandboxID: fork, kind: 'snapshot' }]])
  })

  test('a large one is cut, and says so', async () => {
    const big = await api.create({ timeout: 3600 })
    await api.withStores(async ({ sandboxes }) => {
      const source = (await sandboxes.find(big)) ?? assert.fail()
      for (let index = 0; index < 250; index += 1) {
        const parent = { id: big, kind: 'fork' } as const
        await sandboxes.insert({ ...source, id: `icopy${index}`, parent, state: 'ended' })
      }
    })
    const { json } = await lineage(big)
    assert.deepEqual([Object(json).sandboxes.length, Object(json).isComplete], [200, false])
  })
})

suite('two sandboxes of one template', () => {
  let api: ApiUnderTest
  let ours: string
  let theirs: string
  before(async () => {
    api = await startApiUnderTest()
    ours = await api.create({ timeout: 3600 })
    theirs = await api.create({ timeout: 3600 })
    const { changes } = api.node
    changes.set(ours, '/same', { after: 'x' })
    changes.set(theirs, '/same', { after: 'x' })
    changes.set(ours, '/mine', { after: 'mine\n' })
    changes.set(theirs, '/etc/motd', { before: 'hello\n', after: 'changed\n' })
  })
  after(() => api[Symbol.asyncDispose]())

  const list = (query: string) => api.call('GET', `/sandboxes/${ours}/changes?${query}`)

  test('are compared, in pages', async () => {
    const { status, json, text } = await list(`with=${theirs}`)
    assert.equal(status, 200, text)
    const kinds = Object(json).changes.map(({ path, kind }: Record<string, string>) => [path, kind])
    assert.deepEqual(kinds, [
      ['/etc/motd', 'modified'],
      ['/mine', 'added'],
    ])
    const first = Object((await list(`with=${theirs}&limit=1`)).json)
    const second = Object((await list(`with=${theirs}&limit=1&nextToken=${first.nextToken}`)).json)
    assert.deepEqual(
      [first.changes[0].path, second.changes[0].path, second.nextToken],
      ['/etc/motd', '/mine', undefined],
    )
  })

  test('a file of both is read', async () => {
    const path = `/sandboxes/${ours}/changes/content?path=/etc/motd&with=${theirs}`
    const { json } = await api.call('GET', path)
    const { before: their, after: our } = Object(json)
    assert.deepEqual([their.content, our.content], ['changed\n', 'hello\n'])
    const unchanged = path.replace('/etc/motd', '/etc/passwd')
    assert.equal((await api.call('GET', unchanged)).status, 404)
  })

  test('a sandbox of another team, an unknown one and a malformed ID are refused', async () => {
    const headers = { 'x-api-key': api.theirs.apiKey }
    const body = { templateID: 'base' }
    const foreign = Object((await api.call('POST', '/v2/sandboxes', { headers, body })).json)
    assert.equal((await list(`with=${foreign.sandboxID}`)).status, 404)
    assert.equal((await list('with=iunknown')).status, 404)
    assert.equal((await list('with=NOT')).status, 400)
  })

  test('sandboxes of different templates are refused', async () => {
    await api.withStores(({ sandboxes }) =>
      sandboxes.update(theirs, (current) => ({ ...current, buildId: crypto.randomUUID() })),
    )
    const { status, json } = await list(`with=${theirs}`)
    assert.equal(status, 409)
    assert.match(Object(json).message, /same template build/)
  })
})
