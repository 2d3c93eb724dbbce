import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { manualClock, startApiUnderTest } from '../sim/api.ts'
import type { ApiUnderTest } from '../sim/api.ts'

/** Sandbox logs from the node: their contents and who may read them. */

const begin = Date.parse('2026-01-01T00:00:00Z')
const day = 24 * 3600 * 1000

async function messages(api: ApiUnderTest, path: string): Promise<string[]> {
  const { status, json } = await api.call('GET', path)
  assert.equal(status, 200)
  const { logs } = Object(json)
  assert.ok(Array.isArray(logs))
  return logs.map(({ message, line }) => message ?? JSON.parse(line).message)
}

suite('the log of a sandbox', () => {
  let api: ApiUnderTest
  let id: string
  before(async () => {
    const clock = manualClock()
    clock.advance((8 * day) / 1000)
    api = await startApiUnderTest({ clock })
    id = await api.create({ timeout: 3600 })
    api.node.logs.write(
      id,
      { at: begin + 10, message: 'older than 7 days' },
      { at: begin + 2 * day, level: 'debug', message: 'GET /files /a', fields: { path: '/a' } },
      { at: begin + 3 * day, message: 'hello', fields: { logger: 'process', pid: '7' } },
      { at: begin + 3 * day + 1, level: 'warn', message: 'Hello', fields: { tag: 'a tag' } },
      { at: begin + 8 * day + 500, level: 'error', message: 'a moment ahead of the clock' },
    )
  })
  after(() => api[Symbol.asyncDispose]())

  const [old, file, hello, warned, ahead] = [
    'older than 7 days',
    'GET /files /a',
    'hello',
    'Hello',
    'a moment ahead of the clock',
  ]

  const at = (days: number, ms = 0) => begin + days * day + ms

  for (const [query, expected] of [
    ['', [file, hello, warned, ahead]],
    ['start=0', [old, file, hello, warned, ahead]],
    [`start=${at(3)}`, [hello, warned, ahead]],
    [`start=${at(3, 1)}`, [warned, ahead]],
    [`start=${at(8, 501)}`, []],
    ['start=9223372036854775807', []],
    ['limit=2', [file, hello]],
    [`start=${at(3)}&limit=1`, [hello]],
    ['limit=0', []],
    ['limit=2147483647', [file, hello, warned, ahead]],
    ['unknown=x', [file, hello, warned, ahead]],
  ] as const) {
    test(`v1: ${query || 'no parameter'}`, async () => {
      assert.deepEqual(await messages(api, `/sandboxes/${id}/logs?${query}`), expected)
    })
  }

  for (const [query, expected] of [
    ['', [ahead, warned, hello, file]],
    ['direction=backward&limit=2', [ahead, warned]],
    ['direction=forward', [file, hello, warned, ahead]],
    ['direction=forward&limit=1', [file]],
    ['limit=0', []],
    [`cursor=${at(3, 1)}`, [hello, file, old]],
    [`cursor=${at(3)}&limit=1`, [file]],
    [`cursor=${at(10)}`, [ahead, warned, hello]],
    [`cursor=${at(20)}`, []],
    ['cursor=0', []],
    [`cursor=${at(3)}&direction=forward`, [hello, warned, ahead]],
    [`cursor=${at(0)}&direction=forward`, [old, file, hello, warned]],
    ['cursor=9223372036854775807&direction=forward', []],
    ['cursor=9223372036854775807', []],
    ['level=debug', [ahead, warned, hello, file]],
    ['level=info', [ahead, warned, hello]],
    ['level=warn', [ahead, warned]],
    ['level=error', [ahead]],
    ['search=ello', [warned, hello]],
    ['search=Hello', [warned]],
    ['search=a%20tag', [warned]],
    ['search=%2F', [file]],
    ['search=', [ahead, warned, hello, file]],
    ['search=hello&level=warn', []],
    [`search=${'x'.repeat(256)}`, []],
  ] as const) {
    test(`v2: ${query.slice(0, 60) || 'no parameter'}`, async () => {
      assert.deepEqual(await messages(api, `/v2/sandboxes/${id}/logs?${query}`), expected)
    })
  }

  test('v1 has each entry as a line of JSON with its level, and as an entry', async () => {
    const { json } = await api.call('GET', `/sandboxes/${id}/logs?start=${at(3)}&limit=1`)
    const timestamp = '2026-01-04T00:00:00.000Z'
    const fields = { logger: 'process', pid: '7' }
    const { logs, logEntries } = Object(json)
    assert.deepEqual(logEntries, [{ timestamp, level: 'info', message: 'hello', fields }])
    assert.deepEqual(
      logs.map(({ line, ...rest }: { line: string }) => [rest, JSON.parse(line)]),
      [[{ timestamp }, { level: 'info', message: 'hello', ...fields }]],
    )
  })

  test('v2 has entries', async () => {
    const { json } = await api.call('GET', `/v2/sandboxes/${id}/logs?search=Hello`)
    const timestamp = '2026-01-04T00:00:00.001Z'
    const fields = { tag: 'a tag' }
    assert.deepEqual(json, { logs: [{ timestamp, level: 'warn', message: 'Hello', fields }] })
  })

  test('a field cannot take the place of the level or the message', async () => {
    const odd = await api.create()
    api.node.logs.write(odd, {
      at: at(7),
      message: 'true',
      fields: { level: 'false', message: 'false', constructor: 'x' },
    })
    const { json } = await api.call('GET', `/sandboxes/${odd}/logs`)
    const line: unknown = JSON.parse(Object(json).logs[0].line)
    assert.deepEqual(line, { level: 'info', message: 'true', constructor: 'x' })
  })

  test('the old form of an id is the same sandbox', async () => {
    const path = `/sandboxes/${id}-6532622b/logs?limit=1`
    assert.deepEqual(await messages(api, path), [file])
  })

  test('unknown sandboxes and those of other teams have no log', async () => {
    for (const path of ['/sandboxes/ID/logs', '/v2/sandboxes/ID/logs']) {
      assert.deepEqual(await messages(api, path.replace('ID', 'iunknown')), [])
      const headers = { 'x-api-key': api.theirs.apiKey }
      const reply = await api.call('GET', path.replace('ID', id), { headers })
      assert.deepEqual([reply.status, Object(reply.json).logs], [200, []])
    }
  })

  test('the log outlives its sandbox', async () => {
    const ended = await api.create()
    api.node.logs.write(ended, { at: at(7), message: 'last words' })
    await api.call('DELETE', `/sandboxes/${ended}`)
    assert.deepEqual(await messages(api, `/sandboxes/${ended}/logs`), ['last words'])
    assert.deepEqual(await messages(api, `/v2/sandboxes/${ended}/logs`), ['last words'])
  })

  for (const [path, message] of [
    ['/sandboxes/ID/logs?start=-1', /query\.start: must be an integer of 0 or more/],
    ['/sandboxes/ID/logs?start=1.5', /query\.start/],
    ['/sandboxes/ID/logs?start=', /query\.start/],
    ['/sandboxes/ID/logs?start=now', /query\.start/],
    ['/sandboxes/ID/logs?start=1e3', /query\.start/],
    ['/sandboxes/ID/logs?start=9223372036854775808', /query\.start: must fit/],
    ['/sandboxes/ID/logs?limit=-1', /query\.limit: must be an integer from 0/],
    ['/sandboxes/ID/logs?limit=2147483648', /query\.limit/],
    ['/sandboxes/ID/logs?limit=ten', /query\.limit/],
    ['/sandboxes/ID/logs?limit=', /query\.limit/],
    ['/sandboxes/I_1/logs', /Invalid sandbox ID/],
    ['/v2/sandboxes/ID/logs?cursor=-1', /query\.cursor/],
    ['/v2/sandboxes/ID/logs?cursor=', /query\.cursor/],
    ['/v2/sandboxes/ID/logs?cursor=18446744073709551616', /query\.cursor: must fit/],
    ['/v2/sandboxes/ID/logs?limit=1001', /query\.limit: must be an integer from 0 to 1000/],
    ['/v2/sandboxes/ID/logs?limit=-1', /query\.limit/],
    ['/v2/sandboxes/ID/logs?limit=0x10', /query\.limit/],
    ['/v2/sandboxes/ID/logs?direction=up', /query\.direction/],
    ['/v2/sandboxes/ID/logs?direction=', /query\.direction/],
    ['/v2/sandboxes/ID/logs?level=fatal', /query\.level/],
    ['/v2/sandboxes/ID/logs?level=INFO', /query\.level/],
    [`/v2/sandboxes/ID/logs?search=${'x'.repeat(257)}`, /query\.search: must be at most 256/],
    ['/v2/sandboxes/ID/logs?search=%00', /query\.search: must be well-formed/],
    ['/v2/sandboxes/a-b-c/logs', /Invalid sandbox ID/],
  ] as const) {
    test(`GET ${path.slice(0, 60)} is refused`, async () => {
      const { status, json } = await api.call('GET', path.replace('ID', id))
      assert.deepEqual([status, Object(json).code], [400, 400])
      assert.match(Object(json).message, message)
    })
  }

  test('while the node is away there is no log, and that is said', async () => {
    api.node.failAll(Code.Unavailable)
    for (const path of [`/sandboxes/${id}/logs`, `/v2/sandboxes/${id}/logs`]) {
      const { status, json } = await api.call('GET', path)
      assert.deepEqual([status, Object(json).code], [503, 503])
    }
    api.node.failAll(undefined)
  })
})

test('of a team whose logs take too much the oldest go, and those of others stay', async () => {
  await using api = await startApiUnderTest()
  const mebibyte = 1024 * 1024
  const headers = { 'x-api-key': api.theirs.apiKey }
  const body = { templateID: 'base' }
  const { json } = await api.call('POST', '/v2/sandboxes', { headers, body })
  const theirs = String(Object(json).sandboxID)
  const ours = [await api.create(), await api.create(), await api.create()]
  const [first = '', second = '', third = ''] = ours
  api.node.logs.setSize(theirs, 200 * mebibyte, 1)
  api.node.logs.setSize('ifromanotherstore', 300 * mebibyte, 1)
  api.node.logs.setSize(second, 100 * mebibyte, 2)
  api.node.logs.setSize(first, 100 * mebibyte, 3)
  api.node.logs.setSize(third, 100 * mebibyte, 4)
  await api.restart()
  await waitFor('the oldest to go', () => !api.node.logs.kept.has(second))
  const left = new Set([theirs, 'ifromanotherstore', first, third])
  assert.deepEqual(api.node.logs.kept, left)
})
