import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger } from '@atoll/kit/log'
import { waitFor } from '@atoll/kit/wait'
import { collectBuilds } from '../../app/builds/collect-builds.ts'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import { build } from '../../sim/build-client.ts'
import { takeSnapshot } from '../../sim/snapshot-client.ts'

/** Old builds of a template, whose files are removed when nothing uses them any more. */

const day = 24 * 60 * 60
const graceMs = 7 * day * 1000

async function setup() {
  const clock = manualClock()
  const api = await startApiUnderTest({ clock })
  let known: ReadonlySet<string> = new Set()
  return {
    api,
    /** Builds a template and returns the IDs of the build, of the template, and of its files on the node. */
    async make(name: string, tags: readonly string[] = []) {
      const { buildId, templateId, end } = await build(api, { name, tags })
      assert.equal(end.status, 'ready')
      const files = api.node.builds.requests.at(-1)?.templateId ?? ''
      return { buildId, templateId, files }
    },
    /** Advances the clock and runs the collection once. */
    async collect(days: number) {
      clock.advance(days * day)
      known = await api.withStores(async ({ builds }) => {
        await collectBuilds({ builds, clock, log: silentLogger, graceMs, onCollected: () => {} })
        return builds.known(api.node.builds.requests.map(({ templateId }) => templateId))
      })
    },
    /** Advances the clock and restarts the server. */
    async restart(days: number) {
      clock.advance(days * day)
      await api.restart()
    },
    /** Whether the build had its files after the last collection. */
    isKept: ({ files }: { readonly files: string }) => known.has(files),
  }
}

test('the files of a build are removed a week after a newer build replaced it', async () => {
  const { api, make, collect, restart, isKept } = await setup()
  await using _ = api
  const first = await make('mine')
  await collect(30)
  assert.ok(isKept(first), 'the only build is in use')
  const second = await make('mine')
  await collect(6)
  assert.deepEqual([isKept(first), isKept(second)], [true, true])
  const sandbox = await api.create({ templateID: `mine:${first.buildId}` })
  await api.call('DELETE', `/sandboxes/${sandbox}`)
  await collect(6)
  assert.ok(isKept(first), 'a sandbox has used the old build since')
  await restart(8)
  await waitFor('the removal of the old build', () => !api.node.builds.templates.has(first.files))
  assert.ok(api.node.builds.templates.has(second.files))
  await api.create({ templateID: 'mine' })
  const body = { templateID: `mine:${first.buildId}` }
  assert.equal((await api.call('POST', '/v2/sandboxes', { body })).status, 404)
  const tagging = { target: `mine:${first.buildId}`, tags: ['old'] }
  assert.equal((await api.call('POST', '/templates/tags', { body: tagging })).status, 404)
  const { json } = await api.call('GET', '/templates')
  const listed = Object(json).find(({ aliases }: { aliases: string[] }) => aliases.includes('mine'))
  assert.equal(listed.buildCount, 2)
})

test('a tag keeps a build until a week after the tag is gone', async () => {
  const { api, make, collect, isKept } = await setup()
  await using _ = api
  const first = await make('mine', ['default', 'v1'])
  await make('mine', ['default'])
  await collect(30)
  assert.ok(isKept(first))
  const body = { name: 'mine', tags: ['v1'] }
  assert.equal((await api.call('DELETE', '/templates/tags', { body })).status, 204)
  await collect(6)
  assert.ok(isKept(first))
  await collect(2)
  assert.ok(!isKept(first))
})

test('paused sandboxes and snapshots keep a build', async () => {
  const { api, make, collect, isKept } = await setup()
  await using _ = api
  const first = await make('mine')
  const paused = await api.create({ templateID: 'mine', timeout: 3600 })
  assert.equal((await api.call('POST', `/sandboxes/${paused}/pause`)).status, 204)
  const other = await make('other')
  const copied = await api.create({ templateID: 'other' })
  const snapshotId = await takeSnapshot(api, copied)
  await api.call('DELETE', `/sandboxes/${copied}`)
  await make('mine')
  await make('other')
  await collect(30)
  assert.deepEqual([isKept(first), isKept(other)], [true, true])
  await api.call('DELETE', `/sandboxes/${paused}`)
  assert.equal((await api.call('DELETE', `/templates/${snapshotId}`)).status, 204)
  await collect(6)
  assert.deepEqual(
    [isKept(first), isKept(other)],
    [true, false],
    'a sandbox has used the first build lately',
  )
  await collect(2)
  assert.ok(!isKept(first))
})

test('a failed build replaces no other build', async () => {
  const { api, make, collect, isKept } = await setup()
  await using _ = api
  const first = await make('mine')
  api.node.builds.failAt('1')
  assert.equal((await build(api, { name: 'mine' })).end.status, 'error')
  await collect(30)
  assert.ok(isKept(first))
})
