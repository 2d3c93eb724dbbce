import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setupCloud } from '../../sim/setup.ts'

test('a sandbox is paused, shown as paused, and resumed', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  assert.deepEqual(await run(['sandbox', 'pause', id]), succeeded(`paused ${id}\n`))
  const paused = await run(['sandbox', 'list', '--state', 'paused', '--quiet'])
  assert.equal(paused.stdout, `${id}\n`)
  const options = ['--timeout', '1h']
  assert.deepEqual(await run(['sandbox', 'resume', id, ...options]), succeeded(`resumed ${id}\n`))
  assert.equal(cloud.sandboxes.get(id)?.state, 'running')
  assert.deepEqual(
    cloud.requests.filter((line) => line.startsWith('POST')),
    [
      `POST /sandboxes/${id}/pause {"memory":true}`,
      `POST /v2/sandboxes/${id}/connect {"timeout":3600,"memory":true}`,
    ],
  )
})

test('pausing a paused or resuming a running sandbox succeeds and says so', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  assert.deepEqual(await run(['sandbox', 'resume', id]), succeeded(`already running ${id}\n`))
  await run(['sandbox', 'pause', id])
  assert.deepEqual(await run(['sandbox', 'pause', id]), succeeded(`already paused ${id}\n`))
})

test('--no-memory pauses and resumes with files only', async (t) => {
  const { cloud, run } = await setupCloud(t)
  cloud.behavior.supportsMemory = false
  const id = cloud.addSandbox()
  const refused = await run(['sandbox', 'pause', id])
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /^error: The runtime cannot save memory\nhint: add --no-memory/)
  assert.equal((await run(['sandbox', 'pause', id, '--no-memory'])).stdout, `paused ${id}\n`)
  assert.equal((await run(['sandbox', 'resume', id, '--no-memory'])).stdout, `resumed ${id}\n`)
  assert.equal(cloud.requests.at(-1), `POST /v2/sandboxes/${id}/connect {"memory":false}`)
})

for (const [command, done] of [
  ['pause', 'paused'],
  ['resume', 'already running'],
] as const) {
  test(`${command} takes several IDs and reports unknown ones at the end`, async (t) => {
    const { cloud, run } = await setupCloud(t)
    const ids = [cloud.addSandbox(), 'igone', cloud.addSandbox()]
    assert.deepEqual(await run(['sandbox', command, ...ids]), {
      code: 1,
      stdout: `${done} ${ids[0]}\n${done} ${ids[2]}\n`,
      stderr: 'error: Sandbox igone not found\nhint: `atoll sandbox list` shows your sandboxes\n',
    })
  })
}

function succeeded(stdout: string) {
  return { code: 0, stdout, stderr: '' }
}
