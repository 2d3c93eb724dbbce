import assert from 'node:assert/strict'
import { mkdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { envdVersion } from '../../version.ts'
import { collect, shell } from '../../testing/process-calls.ts'
import { accessToken, initToken, runEnvd } from '../../testing/running-envd.ts'
import type { RunningEnvd } from '../../testing/running-envd.ts'

function list(envd: RunningEnvd, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${envd.url}/process.Process/List`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'connect-protocol-version': '1', ...headers },
    body: '{}',
  })
}

test('/health needs no token and is not cacheable', async () => {
  await using envd = await runEnvd({ init: false })
  const response = await fetch(`${envd.url}/health`)
  assert.equal(response.status, 204)
  assert.equal(response.headers.get('cache-control'), 'no-store')
  assert.equal((await fetch(`${envd.url}/health`, { method: 'POST' })).status, 503)
})

test('before the first /init all other routes return 503', async () => {
  await using envd = await runEnvd({ init: false })
  for (const path of ['/', '/process.Process/List', '/process.Process/Start', '/files', '/envs']) {
    const response = await fetch(`${envd.url}${path}`, { method: 'POST' })
    assert.equal(response.status, 503)
    assert.equal(JSON.parse(await response.text()).code, 503)
  }
})

test("/init needs the node's secret, and always returns the version", async () => {
  await using envd = await runEnvd({ init: false })
  const strangers = [{}, { 'x-init-token': '' }, { 'x-init-token': 'wrong' }]
  for (const headers of [...strangers, { 'x-access-token': initToken }]) {
    const response = await envd.init({}, headers)
    assert.equal(response.status, 401)
    assert.equal(response.headers.get('x-envd-version'), envdVersion)
  }
  assert.equal((await list(envd)).status, 503)
  const response = await envd.init({ accessToken, unknownKey: 1 })
  assert.deepEqual([response.status, response.headers.get('x-envd-version')], [204, envdVersion])
})

test('without a node secret, /init rejects all requests', async () => {
  await using envd = await runEnvd({ init: false, initToken: undefined })
  for (const headers of [{}, { 'x-init-token': '' }, { 'x-init-token': 'undefined' }]) {
    assert.equal((await envd.init({}, headers)).status, 401)
  }
})

const badInits = [
  '{',
  '[]',
  'null',
  '"text"',
  { accessToken: '' },
  { accessToken: 5 },
  { timestamp: 'yesterday' },
  { envVars: { A: 1 } },
  { envVars: { 'A=B': 'x' } },
  { envVars: ['A'] },
  { defaultUser: {} },
  { envVars: { A: 'x'.repeat(5_000_000) } },
]

test('an invalid /init is rejected and changes nothing', async () => {
  await using envd = await runEnvd()
  for (const body of badInits) assert.equal((await envd.init(body)).status, 400)
  assert.equal((await list(envd, { 'x-access-token': accessToken })).status, 200)
  assert.deepEqual(envd.unexpectedErrors, [])
})

test('a secured sandbox rejects a missing and a wrong token with a numeric code', async () => {
  await using envd = await runEnvd()
  for (const headers of [{}, { 'x-access-token': '' }, { 'x-access-token': `${accessToken}x` }]) {
    const response = await list(envd, headers)
    assert.equal(response.status, 401)
    assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8')
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff')
    const { code, message } = JSON.parse(await response.text())
    assert.equal(code, 401)
    assert.match(message, /X-Access-Token/)
  }
})

test('/init without a token opens the sandbox, and with a token secures it', async () => {
  await using envd = await runEnvd()
  await envd.init({})
  assert.equal((await list(envd)).status, 200)
  await envd.init({ accessToken: 'second' })
  assert.equal((await list(envd, { 'x-access-token': accessToken })).status, 401)
  assert.equal((await list(envd, { 'x-access-token': 'second' })).status, 200)
})

test('an outdated /init is acknowledged and ignored', async () => {
  await using envd = await runEnvd()
  await envd.init({ accessToken: 'newer', timestamp: '2026-01-02T00:00:00Z' })
  const stale = await envd.init({
    accessToken: 'older',
    timestamp: '2026-01-01T00:00:00.123456789Z',
  })
  assert.equal(stale.status, 204)
  assert.equal((await list(envd, { 'x-access-token': 'newer' })).status, 200)
})

test('variables persist until replaced, and the default user applies', async () => {
  await using envd = await runEnvd()
  await envd.init({ accessToken, envVars: { A: '1', B: '2' }, defaultUser: 'daemon' })
  await envd.init({ accessToken })
  const script = shell('echo $A$B; id -un', { cwd: '/' })
  assert.equal((await collect(envd.client.start(script))).stdout, '12\ndaemon\n')
  await envd.init({ accessToken, envVars: { B: '3' } })
  assert.equal((await collect(envd.client.start(script))).stdout, '3\ndaemon\n')
})

test('settings survive a restart, in a file that only root can read', async () => {
  await using first = await runEnvd()
  await first.init({
    accessToken,
    envVars: { A: '1' },
    sandboxId: 'isandbox',
    defaultUser: 'daemon',
  })
  const file = join(first.folder, 'state/envd.json')
  assert.equal((await stat(file)).mode & 0o777, 0o600)
  await using second = await first.restart()
  assert.equal((await list(second)).status, 401)
  const script = shell('echo $A $E2B_SANDBOX_ID; id -un', { cwd: '/' })
  assert.equal((await collect(second.client.start(script))).stdout, '1 isandbox\ndaemon\n')
})

test('with a damaged settings file envd rejects clients', async () => {
  await using first = await runEnvd()
  await writeFile(join(first.folder, 'state/envd.json'), '{"accessTok')
  await using second = await first.restart()
  assert.equal((await list(second, { 'x-access-token': accessToken })).status, 503)
  assert.equal((await second.init({ accessToken })).status, 204)
  assert.equal((await list(second, { 'x-access-token': accessToken })).status, 200)
})

test('settings that cannot be saved still apply', async () => {
  await using envd = await runEnvd({ stateFile: '/etc/passwd/envd.json' })
  assert.equal((await list(envd)).status, 401)
  assert.equal((await list(envd, { 'x-access-token': accessToken })).status, 200)
})

test('a failed save deletes the older settings', async () => {
  await using first = await runEnvd()
  const file = join(first.folder, 'state/envd.json')
  await mkdir(`${file}.new`) // makes the next write fail
  await first.init({ accessToken: 'newer' })
  await using second = await first.restart()
  assert.equal((await list(second, { 'x-access-token': accessToken })).status, 503)
})

test('the clock is set only if it is behind or far ahead', async () => {
  const stepped: string[] = []
  await using envd = await runEnvd({
    clock: { now: () => new Date('2026-01-01T00:00:10.000Z') },
    stepClock: async (to) => void stepped.push(to.toISOString().slice(14)),
  })
  for (const time of ['00:04.999', '00:05.001', '00:10.050', '00:10.051']) {
    await envd.init({ accessToken, timestamp: `2026-01-01T00:${time}Z` })
  }
  assert.deepEqual(stepped, ['00:04.999Z', '00:10.051Z'])
})

test('the host name is set when the sandbox ID changes', async () => {
  const hostNames: unknown[] = []
  await using envd = await runEnvd({ setHostName: async (...ids) => void hostNames.push(ids) })
  for (const sandboxId of ['i1', 'i1', undefined, 'i2']) await envd.init({ accessToken, sandboxId })
  await using second = await envd.restart()
  await second.init({ accessToken, sandboxId: 'i2' })
  assert.deepEqual(hostNames, [
    ['i1', undefined],
    ['i2', 'i1'],
  ])
})

test('an unknown user is rejected on every route, with a named code', async () => {
  await using envd = await runEnvd()
  for (const path of ['/health', '/nothing']) {
    const headers = { authorization: `Basic ${btoa('ghost:')}`, 'x-access-token': accessToken }
    const response = await fetch(`${envd.url}${path}`, { headers })
    assert.equal(response.status, 401)
    assert.equal(JSON.parse(await response.text()).code, 'unauthenticated')
  }
})

test('CORS allows any origin and exposes the needed headers', async () => {
  await using envd = await runEnvd()
  const preflight = await fetch(`${envd.url}/process.Process/List`, {
    method: 'OPTIONS',
    headers: {
      origin: 'https://example.com',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,x-access-token',
    },
  })
  assert.equal(preflight.status, 204)
  assert.equal(preflight.headers.get('access-control-allow-origin'), '*')
  assert.equal(
    preflight.headers.get('access-control-allow-headers'),
    'authorization,x-access-token',
  )
  assert.match(preflight.headers.get('access-control-allow-methods') ?? '', /POST/)
  assert.equal(preflight.headers.get('access-control-max-age'), '7200')
  const refused = await list(envd, { origin: 'https://example.com' })
  assert.equal(refused.status, 401)
  assert.equal(refused.headers.get('access-control-allow-origin'), '*')
  const allowed = await list(envd, { origin: 'https://a.b', 'x-access-token': accessToken })
  assert.match(allowed.headers.get('access-control-expose-headers') ?? '', /Grpc-Status/)
})
