import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runProgram } from '../sim/run-cli.ts'
import { setupCloud } from '../sim/setup.ts'

test('an operator lists, shows, drains and resumes nodes', async (t) => {
  const { cloud, env: plain } = await setupCloud(t)
  const env = { ...plain, ATOLL_API_KEY: '', ATOLL_ADMIN_TOKEN: cloud.adminToken }
  const run = (...args: string[]) => runProgram(['node', ...args], env)
  const listed = await run('list')
  assert.match(listed.stdout, /^n1 +ready +3 +1 +42 % +25 % +1\.2\.3$/m)
  assert.equal(JSON.parse((await run('list', '--json')).stdout).length, 2)
  const shown = await run('show', 'n1')
  assert.match(shown.stdout, /^CPU +42 % of 16, 6 allocated$/m)
  assert.match(shown.stdout, /^warm pool +base: 1 of 2 ready$/m)
  assert.equal((await run('drain', 'n1', 'n2')).stdout, 'n1 is draining\nn2 is draining\n')
  assert.deepEqual([...cloud.nodes.values()], ['draining', 'draining'])
  assert.equal((await run('resume', 'n1')).stdout, 'n1 is ready\n')
  const unknown = await run('show', 'nx')
  assert.deepEqual([unknown.code, unknown.stdout], [1, ''])
  assert.match(unknown.stderr, /There is no node nx[^]*atoll node list/)
})

test('drain --move waits until all sandboxes have moved, and says which stay', async (t) => {
  const { cloud, env: plain } = await setupCloud(t)
  const env = { ...plain, ATOLL_API_KEY: '', ATOLL_ADMIN_TOKEN: cloud.adminToken }
  const run = (...args: string[]) => runProgram(['node', 'drain', '--move', ...args], env)
  const moved = await run('n1')
  assert.equal(moved.code, 0)
  assert.deepEqual(moved.stdout.trimEnd().split('\n'), [
    'n1 is draining',
    'n1: 1 running, 1 moving, 2 paused',
    'n1: 0 running, 0 moving, 2 paused',
    'n1: 1 paused sandboxes are not in the object store yet',
  ])
  assert.ok(cloud.requests.includes('POST /nodes/n1 {"status":"draining","moveSandboxes":true}'))
  const stays = await run('n2')
  assert.equal(stays.code, 1)
  assert.match(
    stays.stderr,
    /2 sandboxes stay on node n2[^]*ix: No other node takes it[^]*1 others are not/,
  )
})

test('remove --forget repeats its call until nothing is left, and prints what became of the records', async (t) => {
  const { cloud, env: plain } = await setupCloud(t)
  const env = { ...plain, ATOLL_API_KEY: '', ATOLL_ADMIN_TOKEN: cloud.adminToken }
  const run = (...args: string[]) => runProgram(['node', 'remove', ...args], env)
  const refused = await run('n1', '--forget')
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /n1 may still work/)
  cloud.nodes.set('n1', 'gone')
  const forgotten = await run('n1', '--forget')
  assert.equal(forgotten.code, 0)
  assert.deepEqual(forgotten.stdout.trimEnd().split('\n'), [
    'n1 is removed for good',
    'sandboxes ended: 4 running, 2 paused and not in the object store, 2 being killed',
    'sandboxes kept: 4 paused, which resume on other nodes',
    'files lost: 2 snapshots, 0 builds of templates',
  ])
  assert.equal((await run('n2')).stdout, 'n2 is removed\n')
  assert.deepEqual([...cloud.nodes], [['n1', 'forgotten']])
})

test('without the token of operators, the commands say what to set', async (t) => {
  const { run } = await setupCloud(t)
  const { code, stderr } = await run(['node', 'list'])
  assert.equal(code, 1)
  assert.match(stderr, /set ATOLL_ADMIN_TOKEN/)
})
