import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'
import { requestBuild, build, buildStatus, startBuild } from '../../sim/build-client.ts'
import type { RequestedBuild } from '../../sim/build-client.ts'
import { waitFor } from '@atoll/kit/wait'

/** Build logs as clients read them. */

async function messages(
  api: ApiUnderTest,
  asked: RequestedBuild,
  query: string,
): Promise<string[]> {
  const { status, json, text } = await buildStatus(api, asked, query)
  assert.equal(status, 200, text)
  return Object(json).logEntries.map(({ message }: { message: string }) => message)
}

/** Reads pages until one is empty, like the published clients. */
async function drain(api: ApiUnderTest, asked: RequestedBuild): Promise<string[]> {
  const seen: string[] = []
  for (;;) {
    const page = await messages(api, asked, `?logsOffset=${seen.length}`)
    if (page.length === 0) return seen
    seen.push(...page)
  }
}

function readLogs(api: ApiUnderTest, { templateId, buildId }: RequestedBuild, query = '') {
  return api.call('GET', `/templates/${templateId}/builds/${buildId}/logs${query}`)
}

test('a client that pages by offset gets each entry once, and then nothing more', async () => {
  await using api = await startApiUnderTest()
  const said = Array.from({ length: 250 }, (_, index) => `line ${index}`)
  api.node.builds.setLog(...said.map((message) => ({ at: 1000, message })))
  const asked = await build(api)
  assert.equal(asked.end.logEntries.length, 100)
  assert.deepEqual(asked.end.logs, said.slice(0, 100))
  assert.deepEqual(await drain(api, asked), said)
  assert.deepEqual(await messages(api, asked, '?logsOffset=249'), ['line 249'])
  assert.deepEqual(await messages(api, asked, '?limit=0'), [])
  assert.deepEqual(await messages(api, asked, '?limit=2&logsOffset=3'), ['line 3', 'line 4'])
  const last = asked.end.logEntries[0]
  assert.deepEqual(last, {
    timestamp: new Date(1000).toISOString(),
    level: 'info',
    message: 'line 0',
    step: 'base',
  })
})

test('the log of a build can be read while it runs', async () => {
  await using api = await startApiUnderTest()
  const release = api.node.hold('build')
  api.node.builds.setLog({ message: 'so far' })
  const asked = await requestBuild(api)
  await startBuild(api, asked)
  await waitFor('the log', async () => (await messages(api, asked, '')).length === 1)
  assert.equal(Object((await buildStatus(api, asked)).json).status, 'building')
  release()
})

const mixed = [
  { at: 1000, level: 'debug', message: 'd' },
  { at: 2000, level: 'info', message: 'i' },
  { at: 2000, level: 'warn', message: 'w' },
  { at: 3000, level: 'error', message: 'e' },
] as const

test('a level filters less severe entries, and the offset counts the others', async () => {
  await using api = await startApiUnderTest()
  api.node.builds.setLog(...mixed)
  const asked = await build(api)
  assert.deepEqual(await messages(api, asked, '?level=debug'), ['d', 'i', 'w', 'e'])
  assert.deepEqual(await messages(api, asked, '?level=warn'), ['w', 'e'])
  assert.deepEqual(await messages(api, asked, '?level=warn&logsOffset=1'), ['e'])
})

test('the log is read forward or backward from a moment on', async () => {
  await using api = await startApiUnderTest()
  api.node.builds.setLog(...mixed)
  const asked = await build(api)
  const read = async (query: string) =>
    Object((await readLogs(api, asked, query)).json)
      .logs.map(({ message }: { message: string }) => message)
      .join('')
  assert.deepEqual(
    [await read(''), await read('?direction=backward'), await read('?cursor=2000')],
    ['diwe', 'ewid', 'iwe'],
  )
  assert.equal(await read('?cursor=2000&direction=backward'), 'd')
  assert.equal(await read('?direction=backward&limit=2&level=info'), 'ew')
  assert.equal(await read('?source=persistent&cursor=9223372036854775807'), '')
})

test('a log that is too long or has strange lines is cut, and says so', async () => {
  await using api = await startApiUnderTest()
  const many = Array.from({ length: 10_050 }, () => ({ message: 'x' }))
  api.node.builds.setLog({ message: 'y'.repeat(100_000) }, { message: 'a\0b' }, ...many)
  const asked = await build(api)
  const [long, strange] = await messages(api, asked, '?limit=2')
  assert.deepEqual([long?.length, strange], [4000, 'a\ufffdb'])
  const end = await messages(api, asked, '?logsOffset=9999')
  assert.deepEqual([end.length, end[0]], [2, 'x'])
  assert.match(end[1] ?? '', /rest was dropped/)
})

test('an unknown build is refused as the clients expect', async () => {
  await using api = await startApiUnderTest()
  const one = await requestBuild(api)
  const other = await requestBuild(api, { name: 'other' })
  for (const wrong of [
    { ...one, buildId: 'nonsense' },
    { ...one, buildId: randomUUID() },
    { ...one, buildId: other.buildId },
    { ...one, templateId: 'unknown' },
  ]) {
    assert.equal((await buildStatus(api, wrong)).status, 400)
    assert.equal((await readLogs(api, wrong)).status, 400)
  }
  assert.equal((await buildStatus(api, { ...one, templateId: 'mine' })).status, 200)
  for (const query of ['logsOffset=-1', 'logsOffset=x', 'limit=101', 'level=loud']) {
    assert.equal((await buildStatus(api, one, `?${query}`)).status, 400, query)
  }
})

test('the log of a build is deleted a week after its end, and the build is not', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  api.node.builds.setLog({ message: 'long ago' })
  const asked = await build(api)
  clock.advance(6 * 24 * 60 * 60)
  await api.restart()
  assert.deepEqual(await messages(api, asked, ''), ['long ago'])
  clock.advance(24 * 60 * 60 + 1)
  await api.restart()
  await waitFor('the log to go', async () => (await messages(api, asked, '')).length === 0)
  assert.equal(Object((await buildStatus(api, asked)).json).status, 'ready')
})
