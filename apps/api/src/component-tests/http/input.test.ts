import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest, Reply } from '../../sim/api.ts'

/**
 * Invalid input: each case has its own status and a message that names the field; never a 500, and nothing is created.
 */

let api: ApiUnderTest
let running: string
before(async () => {
  api = await startApiUnderTest({ env: { ATOLL_MAX_SANDBOX_SECONDS: '3600' } })
  running = await api.create()
})
after(() => api[Symbol.asyncDispose]())

/** `input` names the case when the check fails. */
function check(reply: Reply, expected: number, message: RegExp, input: unknown = ''): void {
  const { status, json, text } = reply
  const shown = (typeof input === 'string' ? input : JSON.stringify(input)).slice(0, 200)
  assert.deepEqual([status, Object(json).code], [expected, expected], `${shown}: ${text}`)
  assert.match(Object(json).message, message, shown)
  assert.deepEqual([...api.node.running.keys()], [running], shown)
}

const base = { templateID: 'base' }

/** Invalid network settings and the error text after `network.` when a create is rejected. */
const badNetworks: readonly (readonly [object, string])[] = [
  [{ denyOut: ['example.com'] }, 'denyOut: "example.com" is not an IP address or a CIDR range'],
  [{ denyOut: ['8.8.8.8', '8.8.8.8/33'] }, 'denyOut: "8.8.8.8/33" is not an IP'],
  [{ denyOut: ['8.8.8.0/024'] }, 'denyOut: "8.8.8.0/024" is not an IP'],
  [{ denyOut: ['8.8.8.8/'] }, 'denyOut: "8.8.8.8/" is not an IP'],
  [{ denyOut: ['::1/129'] }, 'denyOut: "::1/129" is not an IP'],
  [{ denyOut: ['fe80::1%eth0'] }, 'denyOut: "fe80::1%eth0" is not an IP'],
  [{ denyOut: ['1.2.3.4/8/8'] }, 'denyOut: "1.2.3.4/8/8" is not an IP'],
  [{ denyOut: [''] }, 'denyOut: "" is not an IP'],
  [{ denyOut: ['*'] }, 'denyOut: "\\*" is not an IP'],
  ...['0.0.0.0', '0.0.0.0/8', '::', '::/0', '0:0:0:0:0:0:0:0'].flatMap(
    (entry) =>
      [
        [{ denyOut: [entry] }, `denyOut: "${entry}" is not allowed; "0.0.0.0/0" is`],
        [{ allowOut: [entry] }, `allowOut: "${entry}" is not allowed; "0.0.0.0/0" is`],
      ] as const,
  ),
  [{ allowOut: ['example.com'] }, 'allowOut: the domain "example.com" has an effect only when'],
  [{ allowOut: ['1.2.3.4/40'], denyOut: ['0.0.0.0/0'] }, 'allowOut: "1.2.3.4/40" is not an IP'],
  [{ denyOut: Array.from({ length: 10_001 }, () => '1.1.1.1') }, 'denyOut: Too big'],
  [{ egressProxy: {} }, 'egressProxy.address: is required'],
  [{ rules: { '*': [] } }, 'rules: "\\*" is not a domain'],
  [{ rules: { 'a.b': {} } }, 'rules.a.b: expected array'],
  ...[
    '',
    'a b',
    'http://a',
    'a:0',
    'a:70000',
    'a:x',
    'ü.de',
    '-a',
    'a..b',
    '${PORT}',
    'a:${X}',
  ].map((mask) => [{ maskRequestHost: mask }, 'maskRequestHost: ".*" is not a host name'] as const),
  [{ httpsPorts: [0] }, 'httpsPorts.0: Too small'],
  [{ httpsPorts: [65_536] }, 'httpsPorts.0: Too big'],
  [{ httpsPorts: [443, 49_983] }, 'httpsPorts: 49983 is the port of envd'],
]

const badCreates: readonly (readonly [object | string, number, RegExp])[] = [
  ['', 400, /body: is required/],
  ['{', 400, /JSON/],
  ['null', 400, /body: expected object/],
  ['[]', 400, /body: expected object/],
  ['"base"', 400, /body: expected object/],
  ['{"templateID":"base","__proto__":{"x":1}}', 400, /JSON|prototype/i],
  [{}, 400, /body\.templateID: is required/],
  [{ templateID: 5 }, 400, /body\.templateID: expected string/],
  [{ templateID: null }, 400, /body\.templateID/],
  [{ templateID: '' }, 400, /templateID is malformed/],
  [{ templateID: '../etc' }, 400, /templateID is malformed/],
  [{ templateID: 'x'.repeat(200) }, 400, /templateID is malformed/],
  [{ templateID: 'unknown' }, 404, /Template unknown was not found/],
  [{ templateID: 'other/base' }, 404, /Template other\/base was not found/],
  [{ templateID: 'mcp-gateway', mcp: { github: {} } }, 404, /Atoll has no MCP gateway/],
  [{ templateID: 'base:v9' }, 404, /base has no tag or build v9/],
  [{ templateID: `base:${crypto.randomUUID()}` }, 404, /base has no tag or build/],
  [{ ...base, timeout: 0 }, 400, /timeout must be at least 1/],
  [{ ...base, timeout: -1 }, 400, /body\.timeout/],
  [{ ...base, timeout: 1.5 }, 400, /body\.timeout/],
  [{ ...base, timeout: '60' }, 400, /body\.timeout: expected number/],
  [{ ...base, timeout: 2 ** 31 }, 400, /body\.timeout/],
  [{ ...base, timeout: 3601 }, 400, /timeout must be at most 3600/],
  [{ ...base, metadata: { a: 1 } }, 400, /body\.metadata\.a: expected string/],
  [{ ...base, metadata: ['a'] }, 400, /body\.metadata/],
  [{ ...base, metadata: 'a=b' }, 400, /body\.metadata/],
  [{ ...base, metadata: { a: 'x\0y' } }, 400, /body\.metadata\.a: must be well-formed/],
  [{ ...base, metadata: { a: '\ud800' } }, 400, /body\.metadata\.a: must be well-formed/],
  [{ ...base, metadata: { '\0': 'x' } }, 400, /body\.metadata.*well-formed/s],
  [{ ...base, metadata: { a: 'x'.repeat(70_000) } }, 400, /body\.metadata: must be at most/],
  [{ ...base, envVars: { '': 'x' } }, 400, /body\.envVars.*names must not be empty/],
  [{ ...base, envVars: { 'a=b': 'x' } }, 400, /body\.envVars.*names must not/],
  [{ ...base, envVars: { A: '\0' } }, 400, /body\.envVars\.A: must be well-formed/],
  [{ ...base, envVars: { A: true } }, 400, /body\.envVars\.A: expected string/],
  [{ ...base, envVars: ['A=b'] }, 400, /body\.envVars/],
  [{ ...base, envVars: { A: 'x'.repeat(140_000) } }, 400, /body\.envVars: each variable/],
  [{ ...base, autoPause: 'yes' }, 400, /body\.autoPause: expected boolean/],
  [{ ...base, autoResume: {} }, 400, /body\.autoResume\.enabled: is required/],
  [{ ...base, network: [] }, 400, /body\.network: expected object/],
  [{ ...base, network: { allowOut: 'all' } }, 400, /body\.network\.allowOut: expected array/],
  [{ ...base, mcp: 'x' }, 400, /body\.mcp/],
  [{ ...base, iam: 'x' }, 400, /body\.iam: expected object/],
  [{ ...base, volumeMounts: {} }, 400, /body\.volumeMounts: expected array/],
  [{ ...base, volumeMounts: [{ name: 'v' }] }, 400, /body\.volumeMounts\.0\.path: is required/],
  [{ ...base, autoPauseMemory: false }, 400, /autoPauseMemory: false needs autoPause: true/],
  [
    { ...base, autoPause: true, autoPauseMemory: false, autoResume: { enabled: true } },
    400,
    /autoPauseMemory: false cannot be combined with autoResume\.enabled: true/,
  ],
  [{ ...base, allow_internet_access: 'no' }, 400, /body\.allow_internet_access: expected boolean/],
  ...badNetworks.map(
    ([network, message]) =>
      [{ ...base, network }, 400, new RegExp(`network\\.${message}`)] as const,
  ),
  [{ ...base, iam: { tokens: { a: {} } } }, 400, /Not supported yet: iam\.tokens/],
  [{ ...base, volumeMounts: [{ name: 'v', path: '/v' }] }, 400, /yet: volumeMounts/],
]

for (const path of ['/sandboxes', '/v2/sandboxes']) {
  test(`POST ${path} refuses bad input`, async () => {
    for (const [body, status, message] of badCreates) {
      check(await api.call('POST', path, { body }), status, message, body)
    }
  })
}

test('a sandbox that is not secure cannot be private', async () => {
  const body = { ...base, network: { allowPublicTraffic: false } }
  check(
    await api.call('POST', '/sandboxes', { body }),
    400,
    /network\.allowPublicTraffic: false needs secure: true/,
  )
})

test('PUT /sandboxes/{sandboxID}/network refuses bad rules', async () => {
  for (const [network, message] of badNetworks) {
    // Ingress settings cannot be changed, so this operation does not have these fields.
    if ('maskRequestHost' in network || 'httpsPorts' in network) continue
    const reply = await api.call('PUT', `/sandboxes/${running}/network`, { body: network })
    check(reply, 400, new RegExp(`(^|: |body\\.)${message}`), network)
  }
})

const badIds = ['I123', 'a_b', 'a-b-c', 'a%2Fb', '-a', 'a-', '%00', 'ü', 'a.b', '..%2f..', "a'or'1"]

for (const [method, suffix] of [
  ['GET', ''],
  ['DELETE', ''],
  ['POST', '/timeout'],
  ['POST', '/refreshes'],
  ['POST', '/connect'],
  ['PUT', '/network'],
] as const) {
  test(`${method} /sandboxes/{sandboxID}${suffix} refuses a malformed ID`, async () => {
    for (const id of badIds) {
      const body = method.startsWith('P') ? { body: { timeout: 1 } } : {}
      const reply = await api.call(method, `/sandboxes/${id}${suffix}`, body)
      check(reply, 400, /Invalid sandbox ID/, id)
    }
  })
}

test('an unknown ID is not found, also a very long one', async () => {
  check(await api.call('GET', '/sandboxes/i0'), 404, /Sandbox i0 was not found/)
  check(await api.call('GET', `/sandboxes/${'a'.repeat(1000)}`), 404, /was not found/)
  check(await api.call('GET', `/sandboxes/${'a'.repeat(2000)}`), 414, /too long/)
})

const badTimeouts = [
  '',
  '{}',
  '{',
  '[1]',
  '{"timeout":null}',
  '{"timeout":"1"}',
  '{"timeout":-1}',
  '{"timeout":1.5}',
  '{"timeout":1099511627776}',
]

for (const action of ['timeout', 'connect']) {
  test(`POST /sandboxes/{sandboxID}/${action} refuses a bad timeout and changes nothing`, async () => {
    const path = `/sandboxes/${running}`
    const { endAt } = Object((await api.call('GET', path)).json)
    for (const body of badTimeouts) {
      check(await api.call('POST', `${path}/${action}`, { body }), 400, /body|JSON/, body)
    }
    assert.equal(Object((await api.call('GET', path)).json).endAt, endAt)
  })
}

test('POST /v2/sandboxes/{sandboxID}/connect refuses bad input', async () => {
  for (const body of ['null', '{"timeout":"1"}', '{"timeout":-1}', '{"memory":"yes"}', '{']) {
    const reply = await api.call('POST', `/v2/sandboxes/${running}/connect`, { body })
    check(reply, 400, /body|JSON/, body)
  }
})

test('POST /sandboxes/{sandboxID}/refreshes refuses a bad duration', async () => {
  for (const body of [
    'null',
    '[]',
    '{',
    '{"duration":null}',
    '{"duration":"15"}',
    '{"duration":-1}',
    '{"duration":1.5}',
    '{"duration":3601}',
    '{"duration":9223372036854775808}',
  ]) {
    const reply = await api.call('POST', `/sandboxes/${running}/refreshes`, { body })
    check(reply, 400, /body|JSON/, body)
  }
})

const badQueries: readonly (readonly [string, RegExp])[] = [
  ['limit=0', /query\.limit: must be an integer from 1 to 100/],
  ['limit=101', /query\.limit: must be an integer from 1 to 100/],
  ['limit=-1', /query\.limit/],
  ['limit=ten', /query\.limit/],
  ['limit=1e2', /query\.limit/],
  ['limit=', /query\.limit/],
  ['limit=1&limit=2', /query\.limit/],
  ['order=up', /query\.order/],
  ['state=dead', /query\.state/],
  ['state=', /query\.state/],
  ['state=running,', /query\.state/],
  ['startedAfter=yesterday', /query\.startedAfter/],
  ['startedAfter=2026-01-01', /query\.startedAfter/],
  ['template=base:default', /template must be .* without a tag/],
  ['template=a%20b', /templateID is malformed/],
  ['nextToken=garbage', /Invalid next token/],
  ['nextToken=', /Invalid next token/],
  ['metadata=novalue', /query\.metadata/],
  ['metadata=a%3Db%3Dc', /query\.metadata/],
  ['metadata=%25', /query\.metadata/],
]

test('GET /v2/sandboxes refuses a bad query', async () => {
  for (const [query, message] of badQueries) {
    check(await api.call('GET', `/v2/sandboxes?${query}`), 400, message, query)
  }
})

test('a token of one order is refused in the other', async () => {
  const second = await api.create()
  const page = await api.call('GET', '/v2/sandboxes?limit=1')
  await api.call('DELETE', `/sandboxes/${second}`)
  const token = page.headers.get('x-next-token') ?? assert.fail('there is no second page')
  const reply = await api.call('GET', `/v2/sandboxes?order=asc&nextToken=${token}`)
  check(reply, 400, /Invalid next token/)
})

test('POST /api-keys refuses a bad name and creates no key', async () => {
  const tooLong = `{"name":"${'x'.repeat(300)}"}`
  for (const body of ['{}', '{"name":""}', '{"name":5}', '{"name":"\\u0000"}', tooLong]) {
    check(await api.call('POST', '/api-keys', { body }), 400, /body\.name/, body)
  }
  assert.equal(Object((await api.call('GET', '/api-keys')).json).length, 1)
})

test('a key id must be a UUID, and exist', async () => {
  for (const [method, body] of [
    ['DELETE', undefined],
    ['PATCH', { name: 'x' }],
  ] as const) {
    check(await api.call(method, '/api-keys/7', { body }), 400, /path\.apiKeyID: must be a UUID/)
    const unknown = await api.call(method, `/api-keys/${crypto.randomUUID()}`, { body })
    check(unknown, 404, /API key .* was not found/)
  }
})
