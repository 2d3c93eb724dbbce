import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, readFile, readdir, stat, writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { run } from '@atoll/kit/run'
import { send, setUpFiles } from '../../testing/file-requests.ts'
import { accessToken } from '../../testing/running-envd.ts'
import type { RunningEnvd } from '../../testing/running-envd.ts'

function compose(envd: RunningEnvd, body: unknown) {
  return send(envd, '/files/compose', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

test('compose concatenates the parts in order and deletes them', async (t) => {
  const { envd, folder, at } = await setUpFiles(t)
  await writeFile(at('2'), 'second ')
  await writeFile(at('1'), 'first ')
  await writeFile(at('3'), 'x'.repeat(700_000))
  const reply = await compose(envd, {
    source_paths: [at('1'), at('2'), at('3')],
    destination: at('new/folder/whole.bin'),
    username: 'anna',
  })
  assert.equal(reply.status, 200)
  const path = at('new/folder/whole.bin')
  assert.deepEqual(JSON.parse(reply.text), { path, name: 'whole.bin', type: 'file' })
  assert.equal(await readFile(path, 'utf8'), `first second ${'x'.repeat(700_000)}`)
  const { uid, mode } = await stat(path)
  assert.deepEqual([uid, mode & 0o777], [4242, 0o644])
  assert.equal((await stat(at('new'))).uid, 4242)
  assert.deepEqual(await readdir(folder), ['new'])
})

test('compose replaces the destination, and accepts a single part', async (t) => {
  const { envd, folder, at } = await setUpFiles(t)
  await writeFile(at('piece'), 'new')
  await writeFile(at('whole'), 'a longer old content')
  const reply = await compose(envd, { source_paths: [at('piece')], destination: at('whole') })
  assert.equal(reply.status, 200)
  assert.equal(await readFile(at('whole'), 'utf8'), 'new')
  assert.deepEqual(await readdir(folder), ['whole'])
})

test('invalid compose requests are rejected and change nothing', async (t) => {
  const { envd, folder, at } = await setUpFiles(t)
  await writeFile(at('a'), 'a')
  await mkdir(at('folder'))
  await run('mkfifo', [at('pipe')])
  const before = await readdir(folder)
  const source_paths = [at('a')]
  const destination = at('b')
  const cases: [string, unknown, number][] = [
    ['no JSON', '{', 400],
    ['a list', [], 400],
    ['nothing', {}, 400],
    ['no sources', { source_paths: [], destination }, 400],
    ['sources that are no list', { source_paths: at('a'), destination }, 400],
    ['sources that are no texts', { source_paths: [1], destination }, 400],
    ['no destination', { source_paths }, 400],
    ['an empty destination', { source_paths, destination: '' }, 400],
    ['a destination among the sources', { source_paths, destination: at('a') }, 400],
    ['another home', { source_paths, destination: '~anna/x' }, 400],
    ['a folder as source', { source_paths: [at('folder')], destination }, 400],
    ['a pipe as source', { source_paths: [at('pipe')], destination }, 400],
    ['a folder as destination', { source_paths, destination: at('folder') }, 400],
    ['a NUL', { source_paths: ['/a\0b'], destination }, 400],
    ['a user who is no text', { source_paths, destination, username: 5 }, 400],
    ['an unknown user', { source_paths, destination, username: 'ghost' }, 401],
    ['a missing source', { source_paths: [at('a'), at('gone')], destination }, 404],
    ['a file as a folder', { source_paths, destination: at('a/b') }, 500],
    ['a body without end', `"${'x'.repeat(5_000_000)}"`, 400],
  ]
  for (const [what, body, status] of cases) {
    const reply = await compose(envd, body)
    assert.deepEqual([what, reply.status], [what, status])
    assert.equal(JSON.parse(reply.text).code, status)
  }
  assert.deepEqual(await readdir(folder), before)
})

test('after a body that is too large the connection can be reused', async (t) => {
  const { envd } = await setUpFiles(t)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(() => agent.destroy())
  for (const body of [' '.repeat(8_000_000), '{}']) {
    const headers = { 'x-access-token': accessToken }
    const outgoing = request(`${envd.url}/files/compose`, { method: 'POST', agent, headers })
    outgoing.end(body)
    const [response] = await once(outgoing, 'response', { signal: AbortSignal.timeout(10_000) })
    assert.equal(response.statusCode, 400)
    await buffer(response)
  }
})

test('a full disk keeps the parts and leaves no partial file', async (t) => {
  const { envd, at } = await setUpFiles(t)
  await mkdir(at('small'))
  await run('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', at('small')])
  await using mounted = new AsyncDisposableStack()
  mounted.defer(async () => void (await run('umount', ['--lazy', at('small')])))
  await writeFile(at('big'), Buffer.alloc(2_000_000))
  const order = { source_paths: [at('big')], destination: at('small/whole') }
  assert.equal((await compose(envd, order)).status, 507)
  assert.deepEqual(await readdir(at('small')), [])
  assert.equal((await stat(at('big'))).size, 2_000_000)
})
