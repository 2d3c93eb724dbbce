import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { Signal } from '@atoll/contracts/gen/process/process_pb'
import { begin, byPid, collect, shell } from '../testing/calls.ts'
import { accessToken, initToken, runEnvd } from '../testing/running-envd.ts'
import type { RunningEnvd } from '../testing/running-envd.ts'

function freeze(envd: RunningEnvd, headers: Record<string, string>): Promise<Response> {
  return fetch(`${envd.url}/freeze`, { method: 'POST', headers })
}

test('only the node may freeze', async () => {
  await using envd = await runEnvd({ init: false })
  assert.equal((await freeze(envd, {})).status, 401)
  assert.equal((await freeze(envd, { 'x-access-token': accessToken })).status, 401)
  assert.equal((await freeze(envd, { 'x-init-token': initToken })).status, 204)
})

test('all connections are reset, processes go on, and others may connect at once', async () => {
  await using envd = await runEnvd()
  const { pid, rest } = await begin(envd.client.start(shell('exec sleep 60')))
  const idle = connect(Number(new URL(envd.url).port), '127.0.0.1')
  await once(idle, 'connect')
  const reset = once(idle, 'error')
  const broken = assert.rejects(collect(rest))
  const response = await freeze(envd, { 'x-init-token': initToken })
  assert.equal(response.headers.get('connection'), 'close')
  assert.match(response.headers.get('x-connections') ?? '', /^\d+$/)
  assert.match(String(await reset), /ECONNRESET/)
  await broken
  const [process] = (await envd.client.list({})).processes
  assert.equal(process?.pid, pid)
  const again = await begin(envd.client.connect({ process: byPid(pid) }))
  assert.equal(again.pid, pid)
  await envd.client.sendSignal({ process: byPid(pid), signal: Signal.SIGKILL })
  assert.equal((await collect(again.rest)).end?.status, 'signal: killed')
  assert.deepEqual(envd.unforeseen, [])
})
