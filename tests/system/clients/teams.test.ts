/** Teams, templates and operators on a real installation: through published clients if possible, else over plain HTTP. */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { tryRun } from '@atoll/kit/run'
import { RateLimitError, Sandbox } from 'e2b'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'

const adminToken = 'operators-of-this-test'
const program = fileURLToPath(import.meta.resolve('@e2b/cli/dist/index.js'))
let installation: Installation

before(async () => {
  installation = await install({
    ATOLL_RUNTIME: 'runc',
    ATOLL_ADMIN_TOKEN: adminToken,
    ATOLL_TEAM_CONCURRENT_SANDBOXES: '2',
  })
})
after(() => installation[Symbol.asyncDispose]())

async function request(
  method: string,
  path: string,
  headers: Record<string, string> = { 'x-admin-token': adminToken },
  body?: object,
) {
  const reply = await fetch(`${installation.url}${path}`, {
    method,
    headers: { ...(body && { 'content-type': 'application/json' }), ...headers },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await reply.text()
  const json: unknown = text === '' ? undefined : JSON.parse(text)
  return { status: reply.status, json: Object(json) }
}

test('sandboxes from base are counted, and the published command line lists base', async () => {
  const key = { 'x-api-key': installation.apiKey }
  const [templateBefore] = (await request('GET', '/v2/templates', key)).json
  const sandbox = await Sandbox.create(installation.connection)
  const [templateAfter] = (await request('GET', '/v2/templates', key)).json
  await sandbox.kill()
  assert.equal(templateAfter.spawnCount, templateBefore.spawnCount + 1)
  assert.ok(Date.now() - Date.parse(templateAfter.lastSpawnedAt) < 60_000)
  const home = await mkdtemp(join(tmpdir(), 'e2b-home-'))
  const env = { ...installation.env, HOME: home }
  const { stdout, code } = await tryRun(
    process.execPath,
    [program, 'template', 'list', '--format', 'json'],
    { env },
  )
  await rm(home, { recursive: true })
  assert.equal(code, 0)
  const [template] = JSON.parse(stdout)
  assert.deepEqual([template.templateID, template.names], [templateAfter.templateID, ['base']])
})

test('the SDK reports the sandbox limit of the team, and works again below it', async () => {
  const results = await Promise.allSettled(
    [1, 2, 3].map(() => Sandbox.create(installation.connection)),
  )
  const refusals = results.filter((result) => result.status === 'rejected')
  assert.equal(refusals.length, 1)
  assert.ok(refusals[0]?.reason instanceof RateLimitError, String(refusals[0]?.reason))
  const killReply = await request('POST', `/admin/teams/${installation.teamId}/sandboxes/kill`)
  assert.deepEqual(killReply.json, { killedCount: 2, failedCount: 0 })
  await (await Sandbox.create(installation.connection)).kill()
})

test('the SDK reports the disk limit of the team, and existing sandboxes still work', async () => {
  const key = { 'x-api-key': installation.apiKey }
  const setLimit = (keptDiskMB: number | null) =>
    request('PATCH', `/admin/teams/${installation.teamId}`, undefined, { limits: { keptDiskMB } })
  const sandbox = await Sandbox.create(installation.connection)
  const pause = () =>
    request('POST', `/sandboxes/${sandbox.sandboxId}/pause`, key, { memory: false })
  await sandbox.commands.run('head -c 60000000 /dev/urandom > /home/user/data && sync')
  await setLimit(40)
  await assert.rejects(sandbox.createSnapshot(), RateLimitError)
  assert.equal((await pause()).status, 429)
  assert.equal(await sandbox.isRunning(), true)
  await setLimit(null)
  assert.equal((await pause()).status, 204)
  await setLimit(40)
  const otherSandbox = await Sandbox.create(installation.connection)
  await assert.rejects(
    otherSandbox.createSnapshot(),
    /take [5-9][0-9] MiB, and its limit is 40 MiB/,
  )
  const lifecycle = { onTimeout: 'pause' } as const
  await assert.rejects(Sandbox.create({ ...installation.connection, lifecycle }), RateLimitError)
  await sandbox.connect()
  const { stdout } = await sandbox.commands.run('stat -c %s /home/user/data')
  assert.equal(stdout, '60000000\n')
  await otherSandbox.createSnapshot()
  await setLimit(null)
  await Promise.all([sandbox.kill(), otherSandbox.kill()])
})

test('a team that an operator created works with its key and for its members', async () => {
  const team = await request('POST', '/admin/teams', undefined, { name: 'second' })
  const path = `/admin/teams/${team.json.teamID}`
  const { json: key } = await request('POST', `${path}/api-keys`, undefined, { name: 'a key' })
  const sandbox = await Sandbox.create({ ...installation.connection, apiKey: key.key })
  const counts = await request('GET', '/admin/sandboxes/running-counts')
  assert.deepEqual(counts.json, { [team.json.teamID]: 1 })
  const email = 'somebody@example.com'
  const { json: member } = await request('POST', `${path}/members`, undefined, { email })
  const [memberTeam] = (
    await request('GET', '/teams', { authorization: `Bearer ${member.accessToken}` })
  ).json
  assert.deepEqual(
    [memberTeam.teamID, memberTeam.name, memberTeam.isDefault],
    [team.json.teamID, 'second', true],
  )
  const connection = { ...installation.connection, apiKey: memberTeam.apiKey }
  assert.equal(await Sandbox.kill(sandbox.sandboxId, connection), true)
})

test('the node reports the real values of this machine, and can be drained', async () => {
  const sandbox = await Sandbox.create(installation.connection)
  const [node] = (await request('GET', '/nodes')).json
  const { nodeId } = JSON.parse(await readFile(join(installation.dataDir, 'node.json'), 'utf8'))
  assert.deepEqual([node.id, node.status, node.sandboxCount], [nodeId, 'ready', 1])
  assert.equal(node.metrics.memoryTotalBytes, totalmem())
  assert.ok(node.metrics.allocatedMemoryBytes >= 128 * 1024 * 1024)
  assert.ok(node.metrics.disks[0].totalBytes > node.metrics.disks[0].usedBytes)
  const path = `/nodes/${encodeURIComponent(node.id)}`
  const setStatus = (status: string) => request('POST', path, undefined, { status })
  assert.equal((await setStatus('draining')).status, 204)
  await assert.rejects(Sandbox.create(installation.connection), /draining/)
  assert.equal(await sandbox.isRunning(), true)
  assert.equal((await setStatus('ready')).status, 204)
  await sandbox.kill()
})

test('the server has a page with the API reference', async () => {
  const page = await fetch(`${installation.url}/docs`)
  assert.equal(page.status, 200)
  assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'/)
  assert.match(await page.text(), /id="sandbox\.createV2"/)
})
