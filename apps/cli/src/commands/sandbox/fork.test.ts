import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setupCloud } from '../../sim/setup.ts'

test('the IDs of the forks are printed, one per line', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  const outcome = await run(['sandbox', 'fork', id, '--count', '2'])
  assert.deepEqual(outcome, { code: 0, stdout: 'i1sandbox\ni2sandbox\n', stderr: '' })
  // The server's default timeout is too short for interactive use.
  assert.equal(cloud.requests.at(-1), `POST /sandboxes/${id}/fork {"count":2,"timeout":300}`)
})

test('fork --json prints the reply of the server', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const { stdout } = await run(['sandbox', 'fork', cloud.addSandbox(), '--json'])
  const [copy] = JSON.parse(stdout)
  assert.deepEqual([copy.sandboxID, copy.envdAccessToken], ['i1sandbox', 'token-of-the-sandbox'])
})

test('failed forks are reported after the IDs of the running ones', async (t) => {
  const { cloud, run } = await setupCloud(t)
  cloud.behavior.forkCapacity = 1
  const outcome = await run(['sandbox', 'fork', cloud.addSandbox(), '--count', '3'])
  assert.deepEqual([outcome.code, outcome.stdout], [1, 'i1sandbox\n'])
  assert.match(outcome.stderr, /^error: 2 of 3 forks failed: The node is full\n/)
})

test('a paused sandbox cannot be forked, and the hint says to resume it', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  await run(['sandbox', 'pause', id])
  const { code, stdout, stderr } = await run(['sandbox', 'fork', id])
  assert.deepEqual([code, stdout], [1, ''])
  assert.match(stderr, /is paused\nhint: `atoll sandbox resume/)
})
