/** Files for build steps that are in the object store, while the node that received them does not answer. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { simulateNode } from '@atoll/simulated-node/node'
import { simulateObjects } from '@atoll/simulated-node/objects'
import { Code } from '@connectrpc/connect'
import { startApiUnderTest } from '../../sim/api.ts'
import { build } from '../../sim/build-client.ts'

const hash = 'ab'.repeat(32)

async function setUp(withObjects = true) {
  const objects = withObjects ? simulateObjects() : undefined
  const nodes = ['first', 'second'].map((id) => simulateNode(undefined, id, objects))
  const [node, ...others] = nodes
  const api = await startApiUnderTest({ ...(node && { node }), others })
  const { templateId } = await build(api)
  const home = nodes.find(({ builds }) => builds.templates.size > 0) ?? assert.fail('not built')
  const other = nodes.find((one) => one !== home) ?? assert.fail('there is one node')
  const find = async (apiKey = api.ours.apiKey) => {
    const headers = { 'x-api-key': apiKey }
    const reply = await api.call('GET', `/templates/${templateId}/files/${hash}`, { headers })
    assert.equal(reply.status, 201, reply.text)
    const { present, url } = Object(reply.json)
    return { present: present === true, url: String(url) }
  }
  const put = async (text: string) => {
    const { url } = await find()
    assert.equal((await fetch(url, { method: 'PUT', body: text })).status, 201)
  }
  /** The node is not in reach of an api that starts now. */
  const lose = async () => {
    home.failAll(Code.Unavailable)
    await api.restart()
  }
  const key = `${api.ours.teamId}/${hash}`
  return {
    ...{ api, objects, home, other, find, put, lose, key },
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  }
}

test('files are present while the node that received them is lost, and builds use them elsewhere', async () => {
  await using fleet = await setUp()
  const { api, home, other, find, put, lose, key } = fleet
  await put('an archive')
  await lose()
  assert.equal((await find()).present, true)
  assert.equal(other.builds.files.has(key), false)
  const steps = [{ type: 'COPY', args: ['a', '/a'], filesHash: hash }]
  await build(api, { name: 'other' }, { fromTemplate: 'base', steps })
  await waitFor('the files on the other node', () => other.builds.files.has(key))
  assert.deepEqual(other.builds.files.get(key), home.builds.files.get(key))
})

test('while the store is down, files are received and stay on the node', async () => {
  await using fleet = await setUp()
  const { objects, home, find, put, lose, key } = fleet
  if (objects) objects.isDown = true
  await put('an archive')
  assert.equal((await find()).present, true)
  assert.ok(home.builds.files.has(key))
  await lose()
  assert.equal((await find()).present, false, 'clients send them again')
})

test('without an object store, files are on the node that received them alone', async () => {
  await using fleet = await setUp(false)
  const { find, put, lose } = fleet
  await put('an archive')
  await lose()
  assert.equal((await find()).present, false)
})
