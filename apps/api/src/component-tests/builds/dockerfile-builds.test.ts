import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Template } from '@atoll/contracts/templates/manage'
import { startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'
import { requestBuild, waitForBuild } from '../../sim/build-client.ts'

/** Templates built from a Dockerfile in a single API call. */

const dockerfile = 'FROM e2bdev/base\nRUN echo hi\n'

function post(api: ApiUnderTest, body: object, path = '/templates') {
  const headers = { authorization: `Bearer ${api.ours.accessToken}` }
  return api.call('POST', path, { body, headers })
}

test('a Dockerfile is built at once, and the template can be used', async () => {
  await using api = await startApiUnderTest()
  const body = { dockerfile, alias: 'mine', cpuCount: 3, memoryMB: 513, startCmd: 'serve' }
  const { status, json, text } = await post(api, body)
  assert.equal(status, 202, text)
  const template = Template.parse(json)
  const { templateID: templateId, buildID: buildId, aliases, cpuCount, memoryMB } = template
  assert.deepEqual([aliases, cpuCount, memoryMB], [['mine'], 3, 513])
  assert.equal((await waitForBuild(api, { templateId, buildId })).status, 'ready')
  const [order] = api.node.builds.requests
  assert.deepEqual(
    [order?.parentId, order?.cpuCount, order?.memoryMb, order?.startCommand],
    ['base', 3, 513, 'serve'],
  )
  assert.ok(order?.steps.some(({ type, args }) => type === 'RUN' && args[0] === 'echo hi'))
  await api.create({ templateID: 'mine' })
})

test('without an alias it has its id alone, and is built anew by that', async () => {
  await using api = await startApiUnderTest()
  const first = Template.parse((await post(api, { dockerfile, teamID: api.ours.teamId })).json)
  assert.deepEqual(first.names, [])
  const one = { templateId: first.templateID, buildId: first.buildID }
  assert.equal((await waitForBuild(api, one)).status, 'ready')
  const again = await post(api, { dockerfile }, `/templates/${first.templateID}`)
  const second = Template.parse(again.json)
  assert.deepEqual([again.status, second.templateID], [202, first.templateID])
  assert.notEqual(second.buildID, first.buildID)
  const two = { ...one, buildId: second.buildID }
  assert.equal((await waitForBuild(api, two)).status, 'ready')
  assert.equal((await post(api, { dockerfile }, '/templates/base')).status, 403)
})

test('an invalid Dockerfile is refused and leaves nothing', async () => {
  const adminToken = 'operators-only-token'
  await using api = await startApiUnderTest({ env: { ATOLL_ADMIN_TOKEN: adminToken } })
  const refused = [
    await post(api, {}),
    await post(api, { dockerfile: 'no instruction' }),
    await post(api, { dockerfile: 'RUN echo' }),
    await post(api, { dockerfile, alias: 'Not a name' }),
    await post(api, { dockerfile, alias: '' }),
    await post(api, { dockerfile, cpuCount: 64 }),
  ]
  assert.deepEqual(
    refused.map(({ status }) => status),
    refused.map(() => 400),
  )
  assert.equal((await post(api, { dockerfile, teamID: api.theirs.teamId })).status, 403)
  const headers = { 'x-admin-token': adminToken }
  await api.call('POST', '/nodes/sim', { headers, body: { status: 'draining' } })
  assert.equal((await post(api, { dockerfile, alias: 'mine' })).status, 503)
  assert.equal(Object((await api.call('GET', '/templates')).json).length, 1)
  assert.equal(api.node.builds.requests.length, 0)
})

test('a template of another team cannot be built anew', async () => {
  await using api = await startApiUnderTest()
  const { templateId } = await requestBuild(api)
  const headers = { 'x-api-key': api.theirs.apiKey }
  const { status } = await api.call('POST', `/templates/${templateId}`, {
    headers,
    body: { dockerfile },
  })
  assert.equal(status, 403)
})
