import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Operation } from '@atoll/contracts/operation'
import { operations } from '@atoll/contracts/operations'
import { z } from 'zod'
import { startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'

/**
 * Rules for every operation. The tests iterate over the list of operations, so a new operation is covered once it is
 * declared; a test that needs more input for it fails until the input is added. Authorization is in `auth.test.ts`.
 */

const adminToken = 'operators-only-token'
let api: ApiUnderTest
before(async () => {
  api = await startApiUnderTest({ env: { ATOLL_ADMIN_TOKEN: adminToken } })
})
after(() => api[Symbol.asyncDispose]())

/** Valid bodies of all operations that require one. */
const validBodies: Readonly<Record<string, object>> = {
  'secret.create': { name: 'a', value: 'b' },
  'secret.update': { value: 'b' },
  'sandbox.create': { templateID: 'base' },
  'sandbox.createV2': { templateID: 'base' },
  'sandbox.timeout': { timeout: 10 },
  'sandbox.connect': { timeout: 10 },
  'sandbox.updateNetwork': {},
  'snapshot.create': {},
  'template.create': { name: 'a-name' },
  'template.createV2': { alias: 'a-name' },
  'template.build': { fromTemplate: 'base' },
  'template.buildDockerfile': { dockerfile: 'FROM e2bdev/base' },
  'template.rebuildDockerfile': { dockerfile: 'FROM e2bdev/base' },
  'template.update': { public: true },
  'template.updateV1': { public: true },
  'template.tag': { target: 'base', tags: ['v1'] },
  'template.untag': { name: 'base', tags: ['v1'] },
  'key.create': { name: 'a name' },
  'key.rename': { name: 'a name' },
  'accessToken.create': { name: 'a name' },
  'admin.team.create': { name: 'a name' },
  'admin.team.update': { name: 'a name' },
  'admin.team.block': { level: 'blocked', reason: 'a reason' },
  'admin.member.add': { email: 'somebody@example.com' },
  'admin.key.create': { name: 'a name' },
  'node.setStatus': { status: 'ready' },
}

/** Well-formed path parameters that match no object. */
const unknownIds: Readonly<Record<string, string>> = {
  secretID: 'sec_00000000000000000000000000',
  sandboxID: 'iunknown',
  apiKeyID: crypto.randomUUID(),
  accessTokenID: crypto.randomUUID(),
  userID: crypto.randomUUID(),
  teamID: crypto.randomUUID(),
  nodeID: 'nobody',
  templateID: 'unknown',
  alias: 'unknown',
  name: 'unknown',
  buildID: crypto.randomUUID(),
  hash: '0'.repeat(64),
}

/** Invalid values, sent for every body field whose schema does not allow them. */
const strangeValues: readonly unknown[] = [
  null,
  true,
  -1,
  1.5,
  2 ** 63,
  '',
  '\0',
  '\ud800',
  'x'.repeat(100_000),
  [],
  {},
  ['\0'],
  { a: 1 },
]

for (const operation of operations) {
  const { id, method, path, auth, errors, params, query, body, replies } = operation
  const name = `${method} ${path}`

  test(`${name} has its row in the table of operations`, async () => {
    const page = await readFile(join(import.meta.dirname, '../../../../../docs/api.md'), 'utf8')
    const row = page.split('\n').find((line) => line.includes(`| \`${id}\` |`)) ?? ''
    assert.ok(row.includes(`\`${name}\``), 'run: npm run generate')
    for (const status of [...Object.keys(replies), ...errors]) assert.ok(row.includes(`${status}`))
  })

  test(`${name} declares what its kind of caller may meet`, () => {
    const implied = { team: [401, 403, 429], user: [401], admin: [401], none: [] }[auth]
    for (const status of implied) assert.ok(errors.includes(status), `${status}`)
    const takesInput =
      method !== 'GET' || [params, query].some(({ shape }) => Object.keys(shape).length > 0)
    assert.equal(errors.includes(400), takesInput)
  })

  test(`${name} refuses other methods`, async () => {
    const { status, headers, json } = await send(operation, { method: otherMethod(path) })
    assert.deepEqual([status, Object(json).code], [405, 405])
    assert.ok(headers.get('allow')?.includes(method))
  })

  if (method !== 'GET') {
    test(`${name} refuses what is no JSON`, async () => {
      const broken = await send(operation, { body: '{' })
      assert.deepEqual([broken.status, Object(broken.json).code], [400, 400])
      const type = { 'content-type': 'text/plain' }
      const text = await send(operation, { body: 'x', headers: type })
      assert.deepEqual([text.status, Object(text.json).code], [415, 415])
    })
  }

  for (const parameter of Object.keys(query.shape)) {
    test(`${name} refuses ${parameter} twice`, async () => {
      const reply = await send(operation, { query: `?${parameter}=1&${parameter}=2` })
      assert.deepEqual([reply.status, Object(reply.json).code], [400, 400])
      assert.match(Object(reply.json).message, new RegExp(`query\\.${parameter}`))
    })
  }

  for (const parameter of Object.keys(params.shape)) {
    const other = Object.fromEntries(Object.keys(params.shape).map((one) => [one, unknownId(one)]))
    const bad = { ...other, [parameter]: '\0' }
    if (params.safeParse(bad).success) continue
    test(`${name} refuses a malformed ${parameter}`, async () => {
      const reply = await send(operation, { params: bad })
      assert.deepEqual([reply.status, Object(reply.json).code], [400, 400])
      assert.match(Object(reply.json).message, new RegExp(`path\\.${parameter}`))
    })
  }

  if (errors.includes(404) && Object.keys(params.shape).length > 0) {
    test(`${name} finds nothing where nothing is`, async () => {
      const other = Object.fromEntries(
        Object.keys(params.shape).map((one) => [one, unknownId(one)]),
      )
      const reply = await send(operation, { params: other })
      assert.deepEqual([reply.status, Object(reply.json).code], [404, 404])
    })
  }

  for (const [field, schema] of fieldsOf(body)) {
    for (const value of strangeValues) {
      if (schema.safeParse(value).success) continue
      const shown = JSON.stringify(value).slice(0, 30)
      test(`${name} refuses ${field}: ${shown} by name`, async () => {
        const strange = { ...validBodies[id], [field]: value }
        const reply = await send(operation, { body: JSON.stringify(strange) })
        assert.deepEqual([reply.status, Object(reply.json).code], [400, 400])
        assert.match(Object(reply.json).message, new RegExp(`body\\.${field}`))
      })
    }
  }
}

function fieldsOf(body: z.ZodType): [string, z.ZodType][] {
  const inner = body instanceof z.ZodOptional ? body.unwrap() : body
  return inner instanceof z.ZodObject ? Object.entries(inner.shape) : []
}

interface Change {
  readonly method?: string
  readonly params?: Readonly<Record<string, string>>
  readonly query?: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Sends a valid, authorized request with the given change. */
function send(operation: Operation, change: Change) {
  const { id, auth, body } = operation
  const credentials = {
    team: { 'x-api-key': api.ours.apiKey },
    user: { authorization: `Bearer ${api.ours.accessToken}` },
    admin: { 'x-admin-token': adminToken },
    none: {},
  }[auth]
  const { method = operation.method, params = {}, query = '' } = change
  const wanted = body.safeParse(undefined).success ? undefined : validBody(id)
  const given = change.body ?? (wanted && JSON.stringify(wanted))
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(params[name] ?? (name === 'teamID' ? api.ours.teamId : unknownId(name))),
  )
  return api.call(method, path + query, {
    headers: { ...credentials, ...change.headers },
    ...(method !== 'GET' && given !== undefined && { body: given }),
  })
}

function otherMethod(path: string): string {
  const served = new Set(operations.filter((one) => one.path === path).map(({ method }) => method))
  const others = (['PUT', 'PATCH', 'DELETE'] as const).filter((method) => !served.has(method))
  return others[0] ?? assert.fail(`${path} serves every method`)
}

function validBody(id: string): object {
  return validBodies[id] ?? assert.fail(`add a valid body of ${id} to this test`)
}

function unknownId(parameter: string): string {
  return unknownIds[parameter] ?? assert.fail(`add an unknown ${parameter} to this test`)
}
