/** Last printed lines of several sandboxes, for lists. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { Code } from '@connectrpc/connect'
import { startApiUnderTest } from '../sim/api.ts'
import type { ApiUnderTest } from '../sim/api.ts'

const at = Date.parse('2026-01-01T00:00:00Z')
const fields = { stream: 'stdout' }

suite('the last lines of sandboxes', () => {
  let api: ApiUnderTest
  let [talking, quiet] = ['', '']
  before(async () => {
    api = await startApiUnderTest()
    ;[talking, quiet] = [await api.create(), await api.create()]
    api.node.logs.write(
      talking,
      { at, message: 'first', fields },
      { at: at + 1, message: 'a \u001b[31m\u202e line', fields },
      { at: at + 2, message: 'GET /files' },
    )
    api.node.logs.write(quiet, { at, message: 'GET /files' })
  })
  after(() => api[Symbol.asyncDispose]())

  const ask = async (ids: readonly string[], apiKey?: string) => {
    const path = `/sandboxes/last-lines?sandbox_ids=${ids.join()}`
    return api.call('GET', path, apiKey === undefined ? {} : { headers: { 'x-api-key': apiKey } })
  }

  test('are what programs printed, and sandboxes without a line are omitted', async () => {
    const { status, json } = await ask([talking, quiet, 'iunknown'])
    const line = { timestamp: '2026-01-01T00:00:00.001Z', text: 'a \u001b[31m\u202e line' }
    assert.deepEqual([status, json], [200, { sandboxes: { [talking]: line } }])
  })

  test('of another team are not shown', async () => {
    const { status, json } = await ask([talking], api.theirs.apiKey)
    assert.deepEqual([status, json], [200, { sandboxes: {} }])
  })

  test('are missing while the node does not answer, and the list of sandboxes needs none', async () => {
    api.node.failAll(Code.Unavailable)
    const { status, json } = await ask([talking])
    api.node.failAll(undefined)
    assert.deepEqual([status, json], [200, { sandboxes: {} }])
  })

  test('of too many, repeated or invalid IDs are refused', async () => {
    const many = Array.from({ length: 101 }, (_, index) => `i${index}`)
    for (const ids of [many, [talking, talking], ['I_1'], ['']]) {
      const { status } = await ask(ids)
      assert.equal(status, 400, ids.join())
    }
    assert.equal((await api.call('GET', '/sandboxes/last-lines')).status, 400)
  })
})
