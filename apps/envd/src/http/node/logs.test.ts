import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { collect, shell } from '../../testing/process-calls.ts'
import { accessToken, initToken, runEnvd } from '../../testing/running-envd.ts'
import type { RunningEnvd } from '../../testing/running-envd.ts'

interface ReportedEntry {
  readonly at: number
  readonly level: string
  readonly message: string
  readonly fields: Readonly<Record<string, string>>
}

const asNode = { 'x-init-token': initToken }

async function logOf(envd: RunningEnvd, after = 0): Promise<ReportedEntry[]> {
  const reply = await fetch(`${envd.url}/logs?after=${after}`, { headers: asNode })
  assert.equal(reply.status, 200)
  const { entries }: { entries: ReportedEntry[] } = JSON.parse(await reply.text())
  return entries
}

const messagesOf = async (envd: RunningEnvd) => (await logOf(envd)).map(({ message }) => message)

test('processes and their output are logged', async () => {
  await using envd = await runEnvd()
  const { pid } = await collect(
    envd.client.start({ ...shell('echo out; echo err >&2; exit 4'), tag: 'mine' }, envd.as('root')),
  )
  const entries = await logOf(envd)
  const common = { logger: 'process', pid: String(pid), tag: 'mine' }
  const start = entries.find(({ message }) => message === 'Process started')
  const command = '/bin/sh -c echo out; echo err >&2; exit 4'
  assert.deepEqual(start?.fields, { ...common, user: 'root', command })
  const lines = entries.filter(({ fields }) => fields['stream'] !== undefined)
  assert.deepEqual(
    new Set(lines.map(({ message, fields }) => `${fields['stream']}: ${message}`)),
    new Set(['stdout: out', 'stderr: err']),
  )
  const end = entries.at(-1)
  assert.deepEqual(end?.message, 'Process ended')
  assert.deepEqual(end.fields, { ...common, exitCode: '4', status: 'exit status 4' })
})

test('a client can ask for entries after a time', async () => {
  await using envd = await runEnvd()
  await collect(envd.client.start(shell('echo one'), envd.as('root')))
  const last = (await logOf(envd)).at(-1)?.at ?? assert.fail('no entries')
  assert.deepEqual(await logOf(envd, last), [])
  await collect(envd.client.start(shell('echo two'), envd.as('root')))
  const messages = (await logOf(envd, last)).map(({ message }) => message)
  assert.deepEqual(messages, ['Process started', 'two', 'Process ended'])
})

test('a failed process start is logged', async () => {
  await using envd = await runEnvd()
  const call = envd.client.start(shell('true', { cwd: '/not/there' }), envd.as('root'))
  await assert.rejects(collect(call))
  const last = (await logOf(envd)).at(-1)
  assert.deepEqual([last?.level, last?.fields['command']], ['warn', '/bin/sh -c true'])
})

test('file access is logged by path at debug level', async () => {
  await using envd = await runEnvd()
  const headers = { 'x-access-token': accessToken, 'content-type': 'application/octet-stream' }
  const url = `${envd.url}/files?path=${envd.folder}/a&username=root`
  await fetch(url, { method: 'POST', headers, body: 'content that is not logged' })
  await fetch(url, { headers: { 'x-access-token': accessToken } })
  const entries = (await logOf(envd)).filter(({ fields }) => fields['logger'] === 'files')
  const fields = { logger: 'files', path: `${envd.folder}/a`, user: 'root' }
  assert.deepEqual(
    entries.map((entry) => [entry.level, entry.message, entry.fields]),
    [
      ['debug', `POST /files ${envd.folder}/a`, fields],
      ['debug', `GET /files ${envd.folder}/a`, fields],
    ],
  )
})

test('secrets are never logged', async () => {
  await using envd = await runEnvd()
  await envd.init({ accessToken, envVars: { GLOBAL: 'value-of-global' } })
  const request = shell('exit 0', { envs: { KEY: 'value-of-key' } })
  await collect(envd.client.start(request, envd.as('root')))
  const text = JSON.stringify(await logOf(envd))
  for (const secret of [accessToken, initToken, 'value-of-global', 'value-of-key']) {
    assert.ok(!text.includes(secret), secret)
  }
})

test('a sandbox made from a snapshot starts with an empty log', async () => {
  await using envd = await runEnvd({ init: false })
  await envd.init({ accessToken, sandboxId: 'parent' })
  await collect(envd.client.start(shell('echo of the parent'), envd.as('root')))
  await envd.init({ accessToken, sandboxId: 'parent' })
  assert.ok((await messagesOf(envd)).includes('of the parent'))
  await envd.init({ accessToken, sandboxId: 'child' })
  assert.deepEqual(await messagesOf(envd), ['Sandbox ready'])
})

test('a restart of envd is logged', async () => {
  await using first = await runEnvd({ init: false })
  await first.init({ accessToken, sandboxId: 'i1' })
  await using second = await first.restart()
  const [entry] = await logOf(second)
  assert.deepEqual([entry?.level, entry?.message], ['warn', 'envd restarted'])
})

test('an endless output is not slowed down, and the log stays bounded', async () => {
  await using envd = await runEnvd()
  const began = performance.now()
  await collect(envd.client.start(shell('yes | head -c 50000000'), envd.as('root')))
  const entries: ReportedEntry[] = []
  // One response has at most 256 KiB, and a slow machine logs more until the process ends.
  await waitFor('the end', async () => {
    entries.push(...(await logOf(envd, entries.at(-1)?.at)))
    return entries.some(({ message }) => message === 'Process ended')
  })
  // 500 lines at once, and 100 more each second.
  const maxEntries = 600 + (performance.now() - began) / 10
  assert.ok(entries.length < maxEntries, `${entries.length} of ${maxEntries}`)
  const dropped = entries.map(
    ({ message }) => /^Log rate limit exceeded: .* and (\d+) bytes/.exec(message)?.[1],
  )
  const droppedBytes = dropped.reduce((sum, bytes) => sum + Number(bytes ?? 0), 0)
  assert.ok(droppedBytes >= 1_000_000, `${droppedBytes} bytes`)
})

for (const [who, headers] of [
  ['a caller without a secret', {}],
  ['the owner of the sandbox', { 'x-access-token': accessToken }],
  ['a caller with a wrong secret', { 'x-init-token': 'wrong' }],
] as const) {
  test(`the log is refused to ${who}`, async () => {
    await using envd = await runEnvd()
    const reply = await fetch(`${envd.url}/logs?after=0`, { headers })
    assert.equal(reply.status, 401)
  })
}

for (const query of ['', '?after=', '?after=-1', '?after=x', `?after=${'9'.repeat(16)}`, '?x=1']) {
  test(`GET /logs${query} is refused`, async () => {
    await using envd = await runEnvd()
    const reply = await fetch(`${envd.url}/logs${query}`, { headers: asNode })
    assert.equal(reply.status, 400)
  })
}
