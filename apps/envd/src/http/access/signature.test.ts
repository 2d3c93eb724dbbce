import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { test } from 'node:test'
import { setUpFiles } from '../../testing/file-requests.ts'
import { accessToken } from '../../testing/running-envd.ts'

const now = new Date('2026-01-01T00:00:00.900Z')
const nowSeconds = Math.floor(now.getTime() / 1000)

/** Signs like a client. */
function sign(...parts: readonly (string | number)[]): string {
  const digest = createHash('sha256').update(parts.join(':')).digest('base64')
  return `v1_${digest.replaceAll('=', '')}`
}

async function ask(
  url: string,
  query: Readonly<Record<string, string | number>>,
  init: RequestInit = {},
) {
  const pairs = Object.entries(query).map(([key, value]): [string, string] => [key, String(value)])
  const response = await fetch(`${url}/files?${new URLSearchParams(pairs).toString()}`, init)
  const text = await response.text()
  return { status: response.status, text, message: () => JSON.parse(text).message }
}

test('a signature is valid for one path, operation, user and expiry', async (t) => {
  const { envd, at } = await setUpFiles(t, { clock: { now: () => now } })
  const path = at('a b+ü.txt')
  await writeFile(path, 'signed')
  const later = nowSeconds + 60
  const good: [string, Record<string, string | number>][] = [
    ['for ever', { path, signature: sign(path, 'read', '', accessToken) }],
    ['for a user', { path, username: 'anna', signature: sign(path, 'read', 'anna', accessToken) }],
    [
      'until later',
      {
        path,
        signature: sign(path, 'read', '', accessToken, later),
        signature_expiration: later,
      },
    ],
    [
      'until this second',
      {
        path,
        signature: sign(path, 'read', '', accessToken, nowSeconds),
        signature_expiration: nowSeconds,
      },
    ],
  ]
  for (const [what, query] of good) {
    const { status, text } = await ask(envd.url, query)
    assert.deepEqual([what, status, text], [what, 200, 'signed'])
  }
  const over = nowSeconds - 1
  const bad: [string, Record<string, string | number>, RegExp][] = [
    ['nothing', { path }, /X-Access-Token/],
    [
      'another path',
      { path: `${path}x`, signature: sign(path, 'read', '', accessToken) },
      /does not match/,
    ],
    ['writing', { path, signature: sign(path, 'write', '', accessToken) }, /does not match/],
    ['another token', { path, signature: sign(path, 'read', '', 'other') }, /does not match/],
    ['no token', { path, signature: sign(path, 'read', '', '') }, /does not match/],
    [
      'another user',
      { path, username: 'root', signature: sign(path, 'read', 'anna', accessToken) },
      /does not match/,
    ],
    ['an empty one', { path, signature: '' }, /does not match/],
    [
      'one with padding',
      { path, signature: `${sign(path, 'read', '', accessToken)}=` },
      /does not match/,
    ],
    [
      'a time that is not covered',
      { path, signature: sign(path, 'read', '', accessToken), signature_expiration: later },
      /does not match/,
    ],
    [
      'a time left out',
      { path, signature: sign(path, 'read', '', accessToken, later) },
      /does not match/,
    ],
    [
      'an expired one',
      { path, signature: sign(path, 'read', '', accessToken, over), signature_expiration: over },
      /^signature is already expired$/,
    ],
    [
      'an expired one that is wrong',
      { path, signature: 'v1_x', signature_expiration: over },
      /does not match/,
    ],
  ]
  for (const [what, query, message] of bad) {
    const reply = await ask(envd.url, query)
    assert.equal(reply.status, 401, what)
    assert.equal(JSON.parse(reply.text).code, 401)
    assert.match(reply.message(), message, what)
  }
})

test('a wrong token is rejected despite a valid signature, and a valid token needs none', async (t) => {
  const { envd, at } = await setUpFiles(t)
  const path = at('x')
  await writeFile(path, 'signed')
  const signature = sign(path, 'read', '', accessToken)
  for (const [token, status] of [
    ['wrong', 401],
    ['', 401],
    [accessToken, 200],
  ] as const) {
    const headers = { 'x-access-token': token }
    assert.equal((await ask(envd.url, { path, signature }, { headers })).status, status)
  }
  const headers = { 'x-access-token': accessToken }
  assert.equal((await ask(envd.url, { path, signature: 'v1_x' }, { headers })).status, 200)
})

test('a signature for an upload does not allow a download or compose', async (t) => {
  const { envd, at } = await setUpFiles(t)
  const path = at('up')
  const signature = sign(path, 'write', '', accessToken)
  const body = new FormData()
  body.append('file', new Blob(['content']))
  assert.equal((await ask(envd.url, { path, signature }, { method: 'POST', body })).status, 200)
  assert.equal(await readFile(path, 'utf8'), 'content')
  assert.equal((await ask(envd.url, { path, signature })).status, 401)
  const compose = await fetch(`${envd.url}/files/compose?signature=${signature}`, {
    method: 'POST',
    body: '{}',
  })
  assert.equal(compose.status, 401)
})

test('an absent path is signed as an empty path', async (t) => {
  const { envd } = await setUpFiles(t)
  const reply = await ask(envd.url, { signature: sign('', 'read', '', accessToken) })
  assert.deepEqual([reply.status, JSON.parse(reply.text).code], [400, 400]) // the signature is valid, but the path is a folder
})

test('a sandbox without a token ignores signatures', async (t) => {
  const { envd, at } = await setUpFiles(t)
  await writeFile(at('x'), 'open')
  await envd.init({})
  const path = at('x')
  assert.equal((await ask(envd.url, { path })).text, 'open')
  const stale = { path, signature: 'v1_x', signature_expiration: 1 }
  assert.equal((await ask(envd.url, stale)).text, 'open')
})
