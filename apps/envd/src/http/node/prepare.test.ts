import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { collect, shell } from '../../testing/process-calls.ts'
import { accessToken, initToken, runEnvd } from '../../testing/running-envd.ts'
import type { RunningEnvd } from '../../testing/running-envd.ts'
import { envdVersion } from '../../version.ts'

function prepare(envd: RunningEnvd, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${envd.url}/prepare`, { method: 'POST', headers })
}

test('only the node may call /prepare, before and after /init', async () => {
  await using envd = await runEnvd({ init: false })
  for (const headers of [{}, { 'x-init-token': 'wrong' }, { 'x-access-token': accessToken }]) {
    assert.equal((await prepare(envd, headers)).status, 401)
  }
  const response = await prepare(envd, { 'x-init-token': initToken })
  assert.deepEqual([response.status, response.headers.get('x-envd-version')], [204, envdVersion])
  assert.equal((await fetch(`${envd.url}/files`)).status, 503)
  await envd.init({ accessToken })
  assert.equal((await prepare(envd, { 'x-access-token': accessToken })).status, 401)
  assert.equal((await prepare(envd, { 'x-init-token': initToken })).status, 204)
})

test('the warm-up leaves no traces', async () => {
  await using envd = await runEnvd()
  const headers = { 'x-init-token': initToken }
  const logged = async () => (await fetch(`${envd.url}/logs?after=0`, { headers })).text()
  const before = await logged()
  const answers = await Promise.all([prepare(envd, headers), prepare(envd, headers)])
  assert.deepEqual(
    answers.map(({ status }) => status),
    [204, 204],
  )
  assert.equal(await logged(), before)
  assert.deepEqual((await envd.client.list({})).processes, [])
  assert.deepEqual((await readdir(join(envd.folder, 'state'))).toSorted(), ['envd.json', 'fifos'])
  assert.deepEqual(await readdir(join(envd.folder, 'variables')), ['.E2B_SANDBOX'])
  assert.deepEqual(envd.unexpectedErrors, [])
})

test('/prepare works in an empty image', async () => {
  const accounts = { passwd: '/no/passwd', group: '/no/group' }
  await using envd = await runEnvd({ init: false, accounts })
  assert.equal((await prepare(envd, { 'x-init-token': initToken })).status, 204)
  assert.match(String(envd.unexpectedErrors[0]), /returned 401/)
})

test('pipes exist when /prepare responds, and commands still run', async () => {
  await using envd = await runEnvd({ init: false })
  assert.equal((await prepare(envd, { 'x-init-token': initToken })).status, 204)
  assert.ok((await readdir(join(envd.folder, 'state/fifos'))).length > 10)
  await envd.init({ accessToken })
  assert.equal((await collect(envd.client.start(shell('echo hello')))).stdout, 'hello\n')
  assert.deepEqual(envd.unexpectedErrors, [])
})
