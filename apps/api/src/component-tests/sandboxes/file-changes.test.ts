import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { Code } from '@connectrpc/connect'
import { startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'

suite('files that a sandbox changed', () => {
  let api: ApiUnderTest
  let id: string
  before(async () => {
    api = await startApiUnderTest()
    id = await api.create({ timeout: 3600 })
    const { changes } = api.node
    changes.set(id, '/etc/motd', { before: 'hello\n' })
    changes.set(id, '/home/user/a', { before: 'a\n', after: 'b\n' })
    changes.set(id, '/home/user/b', { after: Buffer.from([0xff, 0]) })
    changes.set(id, Buffer.from('/home/user/\u00ff', 'latin1'), { after: 'x' })
  })
  after(() => api[Symbol.asyncDispose]())

  const list = (query = '') => api.call('GET', `/sandboxes/${id}/changes${query}`)

  test('are listed in pages, in the order of their paths', async () => {
    const { status, json } = await list()
    assert.equal(status, 200)
    assert.deepEqual(Object(json).changes[0], {
      path: '/etc/motd',
      kind: 'deleted',
      type: 'file',
      sizeBytes: 6,
      mode: 0o644,
      modifiedAt: '2026-01-01T00:00:00.000Z',
    })
    const seen: string[] = []
    let token = ''
    do {
      const page = Object((await list(`?limit=1${token}`)).json)
      seen.push(...page.changes.map(({ path, kind }: Record<string, string>) => `${path} ${kind}`))
      token = page.nextToken === undefined ? '' : `&nextToken=${page.nextToken}`
    } while (token)
    assert.deepEqual(seen, [
      '/etc/motd deleted',
      '/home/user/a modified',
      '/home/user/b added',
      '/home/user/\uFFFD added',
    ])
    const below = Object((await list('?path=/etc')).json)
    assert.deepEqual([below.changes.length, below.isComplete], [1, true])
  })

  test('are read before and after; content that is not text is left out', async () => {
    const read = (path: string) =>
      api.call('GET', `/sandboxes/${id}/changes/content?path=${encodeURIComponent(path)}`)
    const { status, json } = await read('/home/user/a')
    assert.equal(status, 200)
    assert.deepEqual(json, {
      path: '/home/user/a',
      before: { type: 'file', sizeBytes: 2, mode: 0o644, content: 'a\n', isTruncated: false },
      after: { type: 'file', sizeBytes: 2, mode: 0o644, content: 'b\n', isTruncated: false },
    })
    assert.deepEqual(Object((await read('/home/user/b')).json).after, {
      ...{ type: 'file', sizeBytes: 2, mode: 0o644, isTruncated: false },
    })
    const unchanged = await read('/etc/passwd')
    assert.equal(unchanged.status, 404)
    assert.match(Object(unchanged.json).message, /has not changed \/etc\/passwd/)
  })

  test('of a paused sandbox are read without waking it', async () => {
    await api.call('POST', `/sandboxes/${id}/pause`)
    assert.equal((await list()).status, 200)
    assert.equal(api.node.running.has(id), false)
  })

  test('bad input, failures of the node and unknown sandboxes have clear answers', async () => {
    assert.equal((await list('?limit=0')).status, 400)
    assert.equal((await list('?limit=1001')).status, 400)
    assert.equal((await list('?path=etc')).status, 400)
    assert.equal((await api.call('GET', `/sandboxes/${id}/changes/content`)).status, 400)
    assert.equal((await api.call('GET', '/sandboxes/iunknown/changes')).status, 404)
    api.node.failAll(Code.Unavailable)
    assert.equal((await list()).status, 503)
    api.node.failAll(undefined)
  })

  test('another team does not see them', async () => {
    const headers = { 'x-api-key': api.theirs.apiKey }
    for (const path of ['changes', 'changes/content?path=/etc/motd']) {
      const { status } = await api.call('GET', `/sandboxes/${id}/${path}`, { headers })
      assert.equal(status, 404)
    }
  })
})
