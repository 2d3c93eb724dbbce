import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { silentLogger } from '@atoll/kit/log'
import { openSessionFile } from './session-file.ts'
import { openSessions, sessionSeconds } from './sessions.ts'
import { createSignInLink } from './sign-in-link.ts'

const apiKey = `e2b_${'a1'.repeat(20)}`

async function setup(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-sessions-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'sessions.json')
  let time = Date.parse('2026-01-01T00:00:00Z')
  const clock = { now: () => new Date(time) }
  return {
    path,
    clock,
    open: () => openSessions(openSessionFile(path, silentLogger), clock),
    pass: (seconds: number) => (time += seconds * 1_000),
  }
}

test('a session survives a restart, and the file reveals neither token nor key', async (t) => {
  const { open, path } = await setup(t)
  const token = await (await open()).open(apiKey)
  const text = await readFile(path, 'utf8')
  assert.equal((await stat(path)).mode & 0o777, 0o600)
  assert.ok(!text.includes(token) && !text.includes(apiKey) && !text.includes(apiKey.slice(4)))
  assert.equal((await open()).findKey(token), apiKey)
})

test('a session ends after 12 hours, when it is closed, and with another token', async (t) => {
  const { open, pass } = await setup(t)
  const sessions = await open()
  const [first, second] = [await sessions.open(apiKey), await sessions.open(apiKey)]
  assert.notEqual(first, second)
  assert.equal(sessions.findKey('x'.repeat(first.length)), undefined)
  await sessions.close(first)
  assert.deepEqual([sessions.findKey(first), sessions.findKey(second)], [undefined, apiKey])
  pass(sessionSeconds - 1)
  assert.equal(sessions.findKey(second), apiKey)
  pass(2)
  assert.equal(sessions.findKey(second), undefined)
  assert.equal((await open()).findKey(second), undefined)
})

test('the number of sessions is bounded: the oldest makes room', async (t) => {
  const { open } = await setup(t)
  const sessions = await open()
  const first = await sessions.open(apiKey)
  const second = await sessions.open(apiKey)
  for (let count = 0; count < 999; count += 1) await sessions.open(apiKey)
  assert.deepEqual([sessions.findKey(first), sessions.findKey(second)], [undefined, apiKey])
})

for (const damaged of ['', '{', '[{"hash":1}]', 'null']) {
  test(`a file with ${JSON.stringify(damaged)} costs only a new sign-in`, async (t) => {
    const { open, path } = await setup(t)
    await writeFile(path, damaged)
    const sessions = await open()
    assert.equal(sessions.findKey(await sessions.open(apiKey)), apiKey)
  })
}

test('a sign-in link works once, and for an hour', async (t) => {
  const { clock, pass } = await setup(t)
  const link = createSignInLink(clock)
  assert.deepEqual(
    [link.redeem('wrong'), link.redeem(link.token), link.redeem(link.token)],
    [false, true, false],
  )
  const late = createSignInLink(clock)
  pass(3_601)
  assert.equal(late.redeem(late.token), false)
})
