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

test('every response about a sandbox has exactly the documented fields', async () => {
  const createReply = await cloud.platform('POST', '/sandboxes', {
    templateID: 'base',
    timeout: 120,
    secure: true,
    metadata: { purpose: 'fields' },
    unknownField: 'of a newer client',
  })
  assert.equal(createReply.status, 201, createReply.text)
  const { sandboxID, templateID, envdVersion, envdAccessToken, ...otherFields } = Object(
    createReply.json,
  )
  assert.match(sandboxID, /^i[a-z0-9]{20}$/)
  assert.match(templateID, /^[a-z0-9]{20}$/)
  assert.match(envdVersion, /^\d+\.\d+\.\d+$/)
  assert.match(envdAccessToken, /^[0-9a-f]{64}$/)
  assert.deepEqual(otherFields, { clientID: '6532622b', alias: 'base' })

  const getReply = await cloud.platform('GET', `/sandboxes/${sandboxID}`)
  const { startedAt, endAt, ...detail } = Object(getReply.json)
  const timestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/
  assert.match(startedAt, timestamp)
  assert.match(endAt, timestamp)
  assert.equal(Date.parse(endAt) - Date.parse(startedAt), 120_000)
  const listedFields = {
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
  assert.deepEqual(detail, { ...listedFields, envdAccessToken, lifecycle })

  const path = '/v2/sandboxes?metadata=purpose%3Dfields'
  const list = await cloud.platform('GET', path)
  assert.deepEqual(list.json, [{ ...listedFields, startedAt, endAt }])
  assert.equal(list.headers['x-total-running'], '1')
  assert.equal(list.headers['x-next-token'], undefined)

  const connectReply = await cloud.platform('POST', `/sandboxes/${sandboxID}/connect`, {
    timeout: 1,
  })
  assert.deepEqual([connectReply.status, connectReply.json], [200, createReply.json])
  const timeoutReply = await cloud.platform('POST', `/sandboxes/${sandboxID}/timeout`, {
    timeout: 60,
  })
  assert.deepEqual([timeoutReply.status, timeoutReply.text], [204, ''])
  const killReply = await cloud.platform('DELETE', `/sandboxes/${sandboxID}`)
  assert.deepEqual([killReply.status, killReply.text], [204, ''])
  const missingReply = await cloud.platform('GET', `/sandboxes/${sandboxID}`)
  assert.deepEqual([missingReply.status, Object(missingReply.json).code], [404, 404])
})

test('an unsecured sandbox has no token, and a kill resets its streams', async () => {
  const createReply = await cloud.platform('POST', '/sandboxes', {
    templateID: 'base',
    timeout: 120,
  })
  const sandbox: HttpSandbox = JSON.parse(createReply.text)
  assert.equal(sandbox.envdAccessToken, undefined)
  const stream = await openProcess(url, envdHeaders(sandbox), shell('echo here; exec sleep 1000'))
  await stream.readUntil(/here/)
  const socketError = once(stream.socket, 'error')
  const outcome = stream.readRemaining().then(
    (messages) => `a clean end after ${JSON.stringify(messages)}`,
    () => 'cut off',
  )
  assert.equal((await cloud.platform('DELETE', `/sandboxes/${sandbox.sandboxID}`)).status, 204)
  assert.equal(await outcome, 'cut off')
  const [{ code, syscall }] = await socketError
  assert.deepEqual([code, syscall], ['ECONNRESET', 'read'])
})

const publishedOperations = [
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
  const operations = Object.entries<object>(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      path,
      operation,
    })),
  )
  const names = new Set(operations.map(({ name }) => name))
  assert.deepEqual(
    publishedOperations.filter((name) => !names.has(name)),
    [],
  )
  const ids = operations.map(({ operation }) => operation.operationId)
  assert.equal(new Set(ids).size, operations.length)
  for (const { name, path, operation } of operations) {
    assert.ok(Object.keys(operation.responses).length > 0, name)
    const pathParameters = (operation.parameters ?? [])
      .filter((parameter: { in: string }) => parameter.in === 'path')
      .map((parameter: { name: string }) => `{${parameter.name}}`)
    assert.deepEqual(pathParameters, path.match(/\{\w+\}/g) ?? [], name)
  }
  const references = JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)
  for (const [, pointer = ''] of references) {
    const target = pointer.split('/').reduce<unknown>((value, key) => Object(value)[key], document)
    assert.ok(target, `#/${pointer} does not exist`)
  }
})
