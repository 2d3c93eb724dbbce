import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Operation } from '@atoll/contracts/operation'
import { operations } from '@atoll/contracts/operations'
import { z } from 'zod'
import { fleetWithoutNodes, startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest, Reply } from '../../sim/api.ts'

/**
 * Rules for every operation. The tests iterate over the list of operations, so a new operation is covered once it is
 * declared; a test that needs more input for it fails until the input is added. Authorization is in `auth.test.ts`.
 */

const adminToken = 'operators-only-token'
let api: ApiUnderTest
before(async () => {
  api = await startApiUnderTest({
    env: { ATOLL_ADMIN_TOKEN: adminToken },
    fleet: fleetWithoutNodes,
  })
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
  'fleet.createToken': { role: 'node' },
}

/** Queries of all operations that require one. */
const validQueries: Readonly<Record<string, string>> = { 'sandbox.changedFile': '?path=/a' }

/** Well-formed path parameters that match no object. */
const unknownIds: Readonly<Record<string, string>> = {
  secretID: 'sec_00000000000000000000000000',
  sandboxID: 'iunknown',
  apiKeyID: crypto.randomUUID(),
  accessTokenID: crypto.randomUUID(),
  userID: crypto.randomUUID(),
  teamID: crypto.randomUUID(),
  nodeID: 'unknown',
  memberID: 'unknown',
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
  const name = `${operation.method} ${operation.path}`
  test(`${name} is documented`, () => checkDocumentation(operation))
  test(`${name} refuses every invalid request, and says why`, async () => {
    await checkMethod(operation)
    await checkJson(operation)
    await checkQuery(operation)
    await checkParameters(operation)
    await checkFields(operation)
  })
}

async function checkDocumentation({ id, method, path, auth, errors, ...operation }: Operation) {
  const { params, query, replies } = operation
  const page = await readFile(join(import.meta.dirname, '../../../../../docs/api.md'), 'utf8')
  const row = page.split('\n').find((line) => line.includes(`| \`${id}\` |`)) ?? ''
  assert.ok(row.includes(`\`${method} ${path}\``), 'run: npm run generate')
  for (const status of [...Object.keys(replies), ...errors]) assert.ok(row.includes(`${status}`))
  const implied = { team: [401, 403, 429], user: [401], admin: [401], none: [] }[auth]
  for (const status of implied) assert.ok(errors.includes(status), `${status} is not declared`)
  const takesInput =
    method !== 'GET' || [params, query].some(({ shape }) => Object.keys(shape).length > 0)
  assert.equal(errors.includes(400), takesInput)
}

async function checkMethod(operation: Operation): Promise<void> {
  const reply = await send(operation, { method: otherMethod(operation.path) })
  checkError(reply, 405)
  assert.ok(reply.headers.get('allow')?.includes(operation.method))
}

async function checkJson(operation: Operation): Promise<void> {
  if (operation.method === 'GET') return
  checkError(await send(operation, { body: '{' }), 400)
  const type = { 'content-type': 'text/plain' }
  checkError(await send(operation, { body: 'x', headers: type }), 415)
}

async function checkQuery(operation: Operation): Promise<void> {
  for (const parameter of Object.keys(operation.query.shape)) {
    const reply = await send(operation, { query: `?${parameter}=1&${parameter}=2` })
    checkError(reply, 400, `query.${parameter}`)
  }
}

async function checkParameters(operation: Operation): Promise<void> {
  const names = Object.keys(operation.params.shape)
  const unknown = Object.fromEntries(names.map((name) => [name, unknownId(name)]))
  for (const parameter of names) {
    const malformed = { ...unknown, [parameter]: '\0' }
    if (operation.params.safeParse(malformed).success) continue
    checkError(await send(operation, { params: malformed }), 400, `path.${parameter}`)
  }
  if (names.length > 0 && operation.errors.includes(404)) {
    checkError(await send(operation, { params: unknown }), 404)
  }
}

async function checkFields(operation: Operation): Promise<void> {
  for (const [field, schema] of fieldsOf(operation.body)) {
    for (const value of strangeValues) {
      if (schema.safeParse(value).success) continue
      const body = JSON.stringify({ ...validBodies[operation.id], [field]: value })
      checkError(await send(operation, { body }), 400, `body.${field}`)
    }
  }
}

function checkError({ status, json, text }: Reply, expected: number, field = ''): void {
  const { code, message } = Object(json)
  assert.deepEqual([status, code], [expected, expected], text)
  assert.ok(String(message).includes(field), `${field} is not in: ${message}`)
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
  const { method = operation.method, params = {} } = change
  const query = change.query ?? validQueries[id] ?? ''
  const defaultBody = body.safeParse(undefined).success ? undefined : validBody(id)
  const sentBody = change.body ?? (defaultBody && JSON.stringify(defaultBody))
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(params[name] ?? (name === 'teamID' ? api.ours.teamId : unknownId(name))),
  )
  return api.call(method, path + query, {
    headers: { ...credentials, ...change.headers },
    ...(method !== 'GET' && sentBody !== undefined && { body: sentBody }),
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
