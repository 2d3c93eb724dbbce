import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'
import { build, requestBuild } from '../../sim/build-client.ts'

/** Templates in the kept-disk quota of a team, beside paused sandboxes and snapshots. */

const mebibyte = 1024 * 1024

function setup() {
  return startApiUnderTest({ env: { ATOLL_TEAM_KEPT_DISK_MB: '100' } })
}

/** Builds a template of this size and returns the status of the build. */
async function make(api: ApiUnderTest, name: string, sizeMb: number) {
  api.node.builds.setSize(sizeMb * mebibyte)
  const { templateId, end } = await build(api, { name })
  const files = api.node.builds.requests.at(-1)?.templateId ?? ''
  return { templateId, files, status: end.status, message: String(end.reason?.message ?? '') }
}

async function pause(api: ApiUnderTest, sizeMb: number): Promise<number> {
  const id = await api.create()
  const diskUsedBytes = BigInt(sizeMb * mebibyte)
  api.node.setUsage(id, { diskUsedBytes, memoryUsedBytes: 0n })
  return (await api.call('POST', `/sandboxes/${id}/pause`)).status
}

test('a build that exceeds the disk limit fails and leaves no files', async () => {
  await using api = await setup()
  assert.equal((await make(api, 'first', 60)).status, 'ready')
  const second = await make(api, 'second', 50)
  assert.equal(second.status, 'error')
  assert.match(second.message, /take 110 MiB, and its limit is 100 MiB/)
  await waitFor('the sweep', () => !api.node.builds.templates.has(second.files))
  assert.equal((await make(api, 'third', 30)).status, 'ready')
})

test('a team at its limit can request no build, and another team can', async () => {
  await using api = await setup()
  const { templateId } = await make(api, 'first', 99)
  assert.equal(await pause(api, 1), 204)
  const body = { name: 'second' }
  const { status, text } = await api.call('POST', '/v3/templates', { body })
  assert.equal(status, 429, text)
  assert.match(text, /take 100 MiB, and its limit is 100 MiB/)
  const headers = { 'x-api-key': api.theirs.apiKey }
  assert.equal((await api.call('POST', '/v3/templates', { body, headers })).status, 202)
  await api.call('DELETE', `/templates/${templateId}`)
  await requestBuild(api, body)
})

test('templates count when sandboxes are paused, copied or created to be paused', async () => {
  await using api = await setup()
  const { templateId } = await make(api, 'first', 60)
  assert.equal(await pause(api, 50), 429)
  const id = await api.create()
  api.node.setUsage(id, { diskUsedBytes: BigInt(50 * mebibyte), memoryUsedBytes: 0n })
  const copy = () => api.call('POST', `/sandboxes/${id}/snapshots`, { body: {} })
  assert.equal((await copy()).status, 429)
  assert.equal(await pause(api, 40), 204)
  const autoPause = { templateID: 'base', autoPause: true }
  const create = () => api.call('POST', '/v2/sandboxes', { body: autoPause })
  assert.equal((await create()).status, 429)
  await api.call('DELETE', `/templates/${templateId}`)
  assert.equal((await create()).status, 201)
  assert.equal((await copy()).status, 201)
})
