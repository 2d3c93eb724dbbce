import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest, Reply } from '../../sim/api.ts'

/** Template names and tags, and how to change them. Snapshots serve as the team's templates. */

let api: ApiUnderTest
let sandbox: string
let slug: string
before(async () => {
  api = await startApiUnderTest()
  slug = await api.withStores(async ({ teams }) => (await teams.find(api.ours.teamId))?.slug ?? '')
  sandbox = await api.create({ timeout: 3600 })
})
after(() => api[Symbol.asyncDispose]())

async function take(name: string): Promise<void> {
  const { status } = await api.call('POST', `/sandboxes/${sandbox}/snapshots`, { body: { name } })
  assert.equal(status, 201)
}

function send(method: string, path: string, body?: object, apiKey = api.ours.apiKey) {
  return api.call(method, path, { headers: { 'x-api-key': apiKey }, ...(body && { body }) })
}

async function tagsOf(name: string): Promise<Record<string, string>> {
  const { status, json } = await send('GET', `/templates/${encodeURIComponent(name)}/tags`)
  assert.equal(status, 200)
  const rows: { tag: string; buildID: string }[] = Object(json)
  return Object.fromEntries(rows.map(({ tag, buildID }) => [tag, buildID]))
}

async function buildOf(reference: string): Promise<string> {
  const id = await api.create({ templateID: reference })
  const build = await api.withStores(async ({ sandboxes }) => (await sandboxes.find(id))?.buildId)
  await send('DELETE', `/sandboxes/${id}`)
  return build ?? assert.fail('it has no build')
}

function codes({ status, json }: Reply): unknown[] {
  return [status, Object(json).code]
}

test('a tag moves to what the target means, however often, and is taken away again', async () => {
  await take('moving')
  await take('moving:v1')
  const { default: first, v1: second } = await tagsOf('moving')
  assert.deepEqual([await buildOf('moving'), await buildOf('moving:v1')], [first, second])
  const assign = (target: string, tags: string[]) =>
    send('POST', '/templates/tags', { target, tags })
  const assigned = await assign('moving:v1', ['stable', 'v2.0'])
  assert.deepEqual(
    [assigned.status, assigned.json],
    [201, { tags: ['stable', 'v2.0'], buildID: second }],
  )
  for (const [target, expected] of [
    ['moving', first],
    ['moving:v1', second],
    [`moving:${first}`, first],
    [`${slug}/moving:v2.0`, second],
  ] as const) {
    assert.equal((await assign(target, ['stable'])).status, 201)
    assert.equal(await buildOf('moving:stable'), expected, target)
  }
  const removed = await send('DELETE', '/templates/tags', {
    name: 'moving',
    tags: ['stable', 'never'],
  })
  assert.deepEqual([removed.status, removed.text], [204, ''])
  assert.deepEqual(await tagsOf('moving'), { default: first, v1: second, 'v2.0': second })
  const gone = await send('POST', '/v2/sandboxes', { templateID: 'moving:stable' })
  assert.equal(gone.status, 404)
})

test('aliases are found by their owner and, where public, by all; other teams learn that they exist', async () => {
  await take('alias')
  const find = (alias: string, apiKey?: string) =>
    send('GET', `/templates/aliases/${encodeURIComponent(alias)}`, undefined, apiKey)
  const base = await find('base', api.theirs.apiKey)
  assert.deepEqual([base.status, Object(base.json).public], [200, true])
  const { status, json } = await find('alias')
  assert.deepEqual([status, Object(json).public], [200, false])
  for (const same of [`${slug}/alias`, 'alias:default', Object(json).templateID]) {
    assert.deepEqual((await find(same)).json, json)
  }
  assert.deepEqual(codes(await find(`${slug}/alias`, api.theirs.apiKey)), [403, 403])
  for (const unknown of ['nothing', 'alias:v9', 'other/alias', 'base:v9']) {
    assert.deepEqual(codes(await find(unknown)), [404, 404], unknown)
  }
  assert.deepEqual(codes(await find('alias', api.theirs.apiKey)), [404, 404])
  assert.deepEqual(codes(await find('a b')), [400, 400])
})

test('tags of others are neither changed nor, unless public, shown', async () => {
  await take('mine')
  const theirs = api.theirs.apiKey
  const name = `${slug}/mine`
  const path = `/templates/${encodeURIComponent(name)}/tags`
  for (const reply of [
    await send('POST', '/templates/tags', { target: name, tags: ['x'] }, theirs),
    await send('DELETE', '/templates/tags', { name, tags: ['x'] }, theirs),
    await send('GET', path, undefined, theirs),
    await send('POST', '/templates/tags', { target: 'base', tags: ['x'] }),
    await send('DELETE', '/templates/tags', { name: 'base', tags: ['x'] }),
  ]) {
    assert.deepEqual(codes(reply), [403, 403])
  }
  assert.deepEqual(Object.keys(await tagsOf('base')), ['default'])
})

const badTags: readonly (readonly [string, object, number, RegExp])[] = [
  ['POST', { target: 'bad', tags: [] }, 400, /body\.tags: must not be empty/],
  ['POST', { target: 'bad', tags: ['a b'] }, 400, /tags: "a b" is malformed/],
  ['POST', { target: 'bad', tags: [''] }, 400, /tags: "" is malformed/],
  ['POST', { target: 'bad', tags: ['A'] }, 400, /tags: "A" is malformed/],
  ['POST', { target: 'bad', tags: [crypto.randomUUID()] }, 400, /looks like a build ID/],
  ['POST', { target: 'a b', tags: ['x'] }, 400, /target is malformed/],
  ['POST', { tags: ['x'] }, 400, /body\.target/],
  ['POST', { target: 'bad', tags: 'x' }, 400, /body\.tags/],
  ['POST', { target: 'unknown', tags: ['x'] }, 404, /was not found/],
  ['POST', { target: 'bad:v9', tags: ['x'] }, 404, /no build/],
  ['DELETE', { name: 'bad', tags: ['default'] }, 400, /default cannot be removed/],
  ['DELETE', { name: 'bad', tags: [] }, 400, /body\.tags: must not be empty/],
  ['DELETE', { name: 'bad:default', tags: ['x'] }, 400, /without a tag/],
  ['DELETE', { name: 'unknown', tags: ['x'] }, 404, /was not found/],
]

test('bad requests for tags are refused', async () => {
  await take('bad')
  for (const [method, body, status, message] of badTags) {
    const reply = await send(method, '/templates/tags', body)
    assert.deepEqual(codes(reply), [status, status], JSON.stringify(body))
    assert.match(Object(reply.json).message, message)
  }
  assert.deepEqual(codes(await send('GET', '/templates/unknown/tags')), [404, 404])
  assert.deepEqual(codes(await send('GET', '/templates/a%20b/tags')), [400, 400])
})
