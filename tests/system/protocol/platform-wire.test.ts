import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { envdHeaders, openProcess, shell, startCloud } from '../http-cloud.ts'
import type { HttpCloud, HttpSandbox } from '../http-cloud.ts'
import { send } from '../wire.ts'

/** The platform API with plain HTTP, as its documents describe it. */

let cloud: HttpCloud
let url: string
before(async () => {
  cloud = await startCloud({ ATOLL_RUNTIME: 'gvisor' })
  url = cloud.installation.url
})
after(() => cloud?.[Symbol.asyncDispose]())

test('every answer about a sandbox has the fields that are promised, and no others', async () => {
  const made = await cloud.platform('POST', '/sandboxes', {
    templateID: 'base',
    timeout: 120,
    secure: true,
    metadata: { purpose: 'fields' },
    unknownField: 'of a newer client',
  })
  assert.equal(made.status, 201, made.text)
  const { sandboxID, templateID, envdVersion, envdAccessToken, ...others } = Object(made.json)
  assert.match(sandboxID, /^i[a-z0-9]{20}$/)
  assert.match(templateID, /^[a-z0-9]{20}$/)
  assert.match(envdVersion, /^\d+\.\d+\.\d+$/)
  assert.match(envdAccessToken, /^[0-9a-f]{64}$/)
  assert.deepEqual(others, { clientID: '6532622b', alias: 'base' })

  const got = await cloud.platform('GET', `/sandboxes/${sandboxID}`)
  const { startedAt, endAt, ...detail } = Object(got.json)
  const timestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/
  assert.match(startedAt, timestamp)
  assert.match(endAt, timestamp)
  assert.equal(Date.parse(endAt) - Date.parse(startedAt), 120_000)
  const listed = {
    templateID,
    sandboxID,
    clientID: '6532622b',
    alias: 'base',
    cpuCount: 2,
    memoryMB: 1024,
    diskSizeMB: 4096,
    metadata: { purpose: 'fields' },
    state: 'running',
    envdVersion,
  }
  const lifecycle = { autoResume: false, onTimeout: 'kill' }
  assert.deepEqual(detail, { ...listed, envdAccessToken, lifecycle })

  const path = '/v2/sandboxes?metadata=purpose%3Dfields'
  const list = await cloud.platform('GET', path)
  assert.deepEqual(list.json, [{ ...listed, startedAt, endAt }])
  assert.equal(list.headers['x-total-running'], '1')
  assert.equal(list.headers['x-next-token'], undefined)

  const connected = await cloud.platform('POST', `/sandboxes/${sandboxID}/connect`, { timeout: 1 })
  assert.deepEqual([connected.status, connected.json], [200, made.json])
  const timeout = await cloud.platform('POST', `/sandboxes/${sandboxID}/timeout`, { timeout: 60 })
  assert.deepEqual([timeout.status, timeout.text], [204, ''])
  const killed = await cloud.platform('DELETE', `/sandboxes/${sandboxID}`)
  assert.deepEqual([killed.status, killed.text], [204, ''])
  const gone = await cloud.platform('GET', `/sandboxes/${sandboxID}`)
  assert.deepEqual([gone.status, Object(gone.json).code], [404, 404])
})

test('a sandbox that is not secured has no token, and killing it resets its streams', async () => {
  const made = await cloud.platform('POST', '/sandboxes', { templateID: 'base', timeout: 120 })
  const bare: HttpSandbox = JSON.parse(made.text)
  assert.equal(bare.envdAccessToken, undefined)
  const stream = await openProcess(url, envdHeaders(bare), shell('echo here; exec sleep 1000'))
  await stream.until(/here/)
  const failed = once(stream.socket, 'error')
  const read = stream.rest().then(
    (messages) => `a clean end after ${JSON.stringify(messages)}`,
    () => 'cut off',
  )
  assert.equal((await cloud.platform('DELETE', `/sandboxes/${bare.sandboxID}`)).status, 204)
  assert.equal(await read, 'cut off')
  const [{ code, syscall }] = await failed
  assert.deepEqual([code, syscall], ['ECONNRESET', 'read'])
})

const published = [
  'GET /health',
  'GET /openapi.json',
  'POST /sandboxes',
  'POST /v2/sandboxes',
  'GET /sandboxes',
  'GET /v2/sandboxes',
  'GET /sandboxes/{sandboxID}',
  'DELETE /sandboxes/{sandboxID}',
  'POST /sandboxes/{sandboxID}/timeout',
  'POST /sandboxes/{sandboxID}/connect',
  'POST /v2/sandboxes/{sandboxID}/connect',
  'GET /api-keys',
  'POST /api-keys',
  'PATCH /api-keys/{apiKeyID}',
  'DELETE /api-keys/{apiKeyID}',
]

test('openapi.json describes every operation in OpenAPI 3.1', async () => {
  const { status, headers, json } = await send(url, { path: '/openapi.json' })
  assert.equal(status, 200)
  assert.match(headers['content-type'] ?? '', /^application\/json/)
  const document = Object(json)
  assert.match(document.openapi, /^3\.1\.\d+$/)
  assert.equal(document.info.version, '0.1.0')
  assert.ok(document.info.title)
  const described = Object.entries<object>(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      path,
      operation,
    })),
  )
  const names = new Set(described.map(({ name }) => name))
  assert.deepEqual(
    published.filter((name) => !names.has(name)),
    [],
  )
  const ids = described.map(({ operation }) => operation.operationId)
  assert.equal(new Set(ids).size, described.length)
  for (const { name, path, operation } of described) {
    assert.ok(Object.keys(operation.responses).length > 0, name)
    const declared = (operation.parameters ?? [])
      .filter((parameter: { in: string }) => parameter.in === 'path')
      .map((parameter: { name: string }) => `{${parameter.name}}`)
    assert.deepEqual(declared, path.match(/\{\w+\}/g) ?? [], name)
  }
  const references = JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)
  for (const [, pointer = ''] of references) {
    const found = pointer.split('/').reduce<unknown>((value, key) => Object(value)[key], document)
    assert.ok(found, `#/${pointer} leads nowhere`)
  }
})
