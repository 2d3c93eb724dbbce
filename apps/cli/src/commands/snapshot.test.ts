import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setupCloud } from '../sim/setup.ts'

test('a sandbox is created from a snapshot', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  const created = await run(['snapshot', 'create', id])
  assert.deepEqual(created, { code: 0, stdout: 'template0:default\n', stderr: '' })
  const made = await run(['sandbox', 'create', created.stdout.trim()])
  assert.deepEqual([made.code, made.stdout], [0, 'i1sandbox\n'])
})

test('create --json prints the reply of the server', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const name = ['--name', 'tools:v1']
  const { stdout } = await run(['snapshot', 'create', cloud.addSandbox(), ...name, '--json'])
  assert.deepEqual(JSON.parse(stdout), { snapshotID: 'team/tools:v1', names: ['team/tools'] })
})

test('list shows all pages, newest first, and filters', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const [first, second] = [cloud.addSandbox(), cloud.addSandbox()]
  await run(['snapshot', 'create', first])
  await run(['snapshot', 'create', second, '--name', 'tools'])
  await run(['snapshot', 'create', second, '--name', 'tools:v2'])
  const table = await run(['snapshot', 'list'])
  assert.deepEqual(
    table.stdout.split('\n').map((line) => line.split(/\s{2,}/)),
    [
      ['ID', 'NAME'],
      ['team/tools:v2', 'team/tools'],
      ['team/tools:default', 'team/tools'],
      ['template0:default', '-'],
      [''],
    ],
  )
  const own = await run(['snapshot', 'list', '--sandbox', first, '--quiet'])
  assert.equal(own.stdout, 'template0:default\n')
  const named = await run(['snapshot', 'list', '--name', 'tools', '--json'])
  assert.equal(JSON.parse(named.stdout).length, 2)
})

test('an empty list prints a hint to stderr', async (t) => {
  const { run } = await setupCloud(t)
  const { stdout, stderr } = await run(['snapshot', 'list'])
  assert.equal(stdout, '')
  assert.match(stderr, /^No snapshots. Create one: atoll snapshot create <sandbox>\n$/)
})

test('delete removes known snapshots and reports unknown ones', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  await run(['snapshot', 'create', id, '--name', 'tools:v1'])
  await run(['snapshot', 'create', id, '--name', 'tools:v2'])
  const outcome = await run(['snapshot', 'delete', 'none', 'tools:v1'])
  assert.deepEqual(outcome, {
    code: 1,
    stdout: 'deleted tools:v1\n',
    stderr:
      'error: Template none was not found\nhint: `atoll snapshot list` shows your snapshots\n',
  })
  assert.equal((await run(['snapshot', 'list', '--quiet'])).stdout, 'team/tools:v2\n')
})

test('tags are set, listed and deleted', async (t) => {
  const { cloud, run } = await setupCloud(t)
  await run(['snapshot', 'create', cloud.addSandbox(), '--name', 'tools:v1'])
  const given = await run(['snapshot', 'tag', 'tools:v1', 'stable', 'default'])
  assert.deepEqual([given.code, given.stdout], [0, 'tagged tools:v1: stable, default\n'])
  assert.equal((await run(['sandbox', 'create', 'tools'])).code, 0)
  const taken = await run(['snapshot', 'tag', '--delete', 'tools', 'stable'])
  assert.deepEqual([taken.code, taken.stdout], [0, 'untagged tools: stable\n'])
  const { stdout } = await run(['snapshot', 'tag', 'tools'])
  assert.deepEqual(
    stdout.split('\n').map((line) => line.split(/\s{2,}/)[0]),
    ['TAG', 'v1', 'default', ''],
  )
})

test('--delete without tags is a usage error', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const { code, stderr } = await run(['snapshot', 'tag', '--delete', 'tools'])
  assert.equal(code, 2)
  assert.match(stderr, /Missing tags to delete/)
  assert.deepEqual(cloud.requests, [])
})

for (const [state, message] of [
  ['paused', /is paused\nhint: `atoll sandbox resume/],
  ['gone', /not found\nhint: `atoll sandbox list`/],
] as const) {
  test(`a snapshot of a sandbox that is ${state} is refused with a hint`, async (t) => {
    const { cloud, run } = await setupCloud(t)
    const id = state === 'gone' ? 'igone' : cloud.addSandbox()
    if (state === 'paused') await run(['sandbox', 'pause', id])
    const { code, stderr } = await run(['snapshot', 'create', id])
    assert.equal(code, 1)
    assert.match(stderr, message)
  })
}
