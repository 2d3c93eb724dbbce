/** Sandboxes of a team that were denied a connection. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Code } from '@connectrpc/connect'
import { Verdict } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'

async function setup() {
  const clock = manualClock()
  const api = await startApiUnderTest({ clock })
  const nowMs = () => clock.now().getTime()
  return {
    api,
    nowMs,
    /** Creates a sandbox whose last connection was some time ago. */
    async create(secondsAgo: number, verdict = Verdict.DENIED) {
      const id = await api.create({ timeout: 3_600 })
      const lastMs = BigInt(nowMs() - secondsAgo * 1_000)
      const seen = { port: 443, protocol: 'tcp', count: 1n, name: 'x.example' }
      api.node.connections.set(id, [{ ...seen, verdict, lastMs }])
      return id
    },
    async listed(apiKey?: string) {
      const options = apiKey === undefined ? {} : { headers: { 'x-api-key': apiKey } }
      const { status, json } = await api.call('GET', '/sandboxes/denied', options)
      assert.equal(status, 200)
      return Object(json).sandboxes
    },
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  }
}

test('those of the last hour are listed, newest first, and those of other teams are not', async () => {
  await using team = await setup()
  const older = await team.create(120)
  await team.create(10, Verdict.ALLOWED)
  await team.create(4_000)
  const newer = await team.create(60)
  const at = (seconds: number) => new Date(team.nowMs() - seconds * 1_000).toISOString()
  const expected = [
    { sandboxID: newer, lastAt: at(60) },
    { sandboxID: older, lastAt: at(120) },
  ]
  assert.deepEqual(await team.listed(), expected)
  assert.deepEqual(await team.listed(team.api.theirs.apiKey), [])
})

test('a node is asked about sandboxes of the team only, and not at all if the team has none there', async () => {
  await using team = await setup()
  const id = await team.create(5)
  const { deniedAsked } = team.api.node.connections
  await team.listed(team.api.theirs.apiKey)
  assert.deepEqual(deniedAsked, [])
  await team.listed()
  assert.deepEqual(deniedAsked, [[id]])
})

test('a sandbox that has ended is not listed, and a node that does not answer has none', async () => {
  await using team = await setup()
  const [ended, kept] = [await team.create(5), await team.create(6)]
  assert.equal((await team.api.call('DELETE', `/sandboxes/${ended}`)).status, 204)
  const ids = (await team.listed()).map(({ sandboxID }: { sandboxID: string }) => sandboxID)
  assert.deepEqual(ids, [kept])
  team.api.node.failAll(Code.Unavailable)
  assert.deepEqual(await team.listed(), [])
  team.api.node.failAll(undefined)
})
