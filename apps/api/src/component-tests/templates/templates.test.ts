import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { Template } from '@atoll/contracts/templates/manage'
import { Code } from '@connectrpc/connect'
import { z } from 'zod'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'
import { simulatedEnvdVersion } from '@atoll/simulated-node/node'

const paths = ['/templates', '/v2/templates']

async function list(api: ApiUnderTest, path: string, headers?: Record<string, string>) {
  const reply = await api.call('GET', path, headers && { headers })
  assert.equal(reply.status, 200, reply.text)
  return z.array(Template).parse(reply.json)
}

for (const path of paths) {
  test(`GET ${path} lists base with every field of the contract`, async () => {
    const clock = manualClock()
    await using api = await startApiUnderTest({ clock, env: { ATOLL_BASE_MEMORY_MB: '256' } })
    const [base, ...others] = await list(api, path)
    assert.deepEqual(others, [])
    assert.match(base?.templateID ?? '', /^[a-z0-9]{20}$/)
    assert.match(base?.buildID ?? '', /^[0-9a-f-]{36}$/)
    assert.deepEqual(base, {
      templateID: base?.templateID,
      buildID: base?.buildID,
      cpuCount: 2,
      memoryMB: 256,
      diskSizeMB: 4096,
      public: true,
      aliases: ['base'],
      names: ['base'],
      createdAt: clock.now().toISOString(),
      updatedAt: clock.now().toISOString(),
      createdBy: null,
      lastSpawnedAt: null,
      spawnCount: 0,
      buildCount: 1,
      envdVersion: simulatedEnvdVersion,
      buildStatus: 'ready',
    })
  })
}

test('created sandboxes of a template are counted, failed creates are not, and a restart keeps the count', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  await api.create()
  clock.advance(60)
  await Promise.all([api.create(), api.create()])
  const last = clock.now().toISOString()
  clock.advance(60)
  api.node.failCreates(Code.Internal)
  await assert.rejects(api.create(), /500/)
  const [base] = await list(api, '/v2/templates')
  assert.deepEqual([base?.spawnCount, base?.lastSpawnedAt], [3, last])
  await api.restart()
  assert.deepEqual(await list(api, '/v2/templates'), [base])
})

test('a change of the configured sizes is an update of the template, not another one', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const [before] = await list(api, '/templates')
  clock.advance(60)
  await api.withStores(({ templates }) =>
    templates.ensure(
      {
        id: 'another',
        buildId: randomUUID(),
        alias: 'base',
        public: true,
        nodeTemplateId: 'base',
        resources: { cpuCount: 7, memoryMb: 512, diskSizeMb: 1 },
      },
      clock.now(),
    ),
  )
  const [after] = await list(api, '/templates')
  // The restart has restored the configured resources.
  assert.deepEqual(after, { ...before, updatedAt: clock.now().toISOString() })
})

test('pages list each template once, newest first; the old form has all of them, oldest first', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  await api.withStores(async ({ templates }) => {
    for (const alias of ['one', 'two', 'three', 'four']) {
      // Pairs of templates have the same time: ties must not be lost between pages.
      if (alias === 'three') clock.advance(1)
      await templates.ensure({ ...templateOf(alias), alias }, clock.now())
    }
  })
  const all = await list(api, '/templates')
  assert.equal(all.length, 5)
  for (const limit of [1, 2, 3, 5, 100]) {
    const seen: string[] = []
    let token: string | null = null
    do {
      const more: string = token === null ? '' : `&nextToken=${token}`
      const page = await api.call('GET', `/v2/templates?limit=${limit}${more}`)
      assert.ok(Object(page.json).length <= limit)
      seen.push(
        ...z
          .array(Template)
          .parse(page.json)
          .map(({ templateID }) => templateID),
      )
      token = page.headers.get('x-next-token')
    } while (token !== null)
    assert.deepEqual(seen, all.map(({ templateID }) => templateID).toReversed(), `limit ${limit}`)
  }
})

function templateOf(alias: string) {
  const resources = { cpuCount: 1, memoryMb: 128, diskSizeMb: 0 }
  const id = alias.padEnd(20, '0')
  return { id, buildId: randomUUID(), public: true, nodeTemplateId: alias, resources }
}

for (const path of paths) {
  test(`GET ${path} takes the own team as teamID and refuses others by who asks`, async () => {
    await using api = await startApiUnderTest()
    const token = { authorization: `Bearer ${api.ours.accessToken}` }
    const key = { 'x-api-key': api.ours.apiKey }
    for (const headers of [key, token]) {
      assert.equal((await list(api, `${path}?teamID=${api.ours.teamId}`, headers)).length, 1)
    }
    for (const other of [api.theirs.teamId, randomUUID(), 'x', '']) {
      const statusOf = async (headers: Record<string, string>) =>
        (await api.call('GET', `${path}?teamID=${other}`, { headers })).status
      assert.deepEqual([await statusOf(key), await statusOf(token)], [400, 403], other)
    }
  })
}

const badQueries: readonly (readonly [string, RegExp])[] = [
  ['limit=0', /query\.limit: must be an integer from 1 to 100/],
  ['limit=101', /query\.limit: must be an integer from 1 to 100/],
  ['limit=-1', /query\.limit/],
  ['limit=1.5', /query\.limit/],
  ['limit=9223372036854775808', /query\.limit/],
  ['limit=ten', /query\.limit/],
  ['limit=', /query\.limit/],
  ['limit=1&limit=2', /query\.limit/],
  ['teamID=a&teamID=b', /query\.teamID/],
  ['teamID=%00', /query\.teamID/],
  ['nextToken=a&nextToken=b', /query\.nextToken/],
  ['nextToken=garbage', /Invalid next token/],
  ['nextToken=', /Invalid next token/],
  [`nextToken=${'x'.repeat(5000)}`, /Invalid next token/],
]

test('bad queries are refused with the name of the field', async () => {
  await using api = await startApiUnderTest()
  for (const [query, message] of badQueries) {
    const { status, json } = await api.call('GET', `/v2/templates?${query}`)
    assert.deepEqual([status, Object(json).code], [400, 400], query)
    assert.match(Object(json).message, message)
  }
})

test('the last known version of envd is shown while the node is away, and without one it is 503', async () => {
  await using api = await startApiUnderTest()
  await list(api, '/v2/templates')
  api.node.failAll(Code.Unavailable)
  assert.equal((await list(api, '/v2/templates'))[0]?.envdVersion, simulatedEnvdVersion)
  await api.restart()
  const { status, json } = await api.call('GET', '/v2/templates')
  assert.deepEqual([status, Object(json).code], [503, 503])
})
