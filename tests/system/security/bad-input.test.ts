import assert from 'node:assert/strict'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, afterEach, before, suite, test } from 'node:test'
import { envdHeaders, shell, startCloud } from '../cloud-by-hand.ts'
import { cellOf, namesOf } from '../host-state.ts'
import type { CloudByHand, HandSandbox } from '../cloud-by-hand.ts'
import { basic, endFlag, frame, framesOf, send } from '../wire.ts'
import type { Call, Reply } from '../wire.ts'

/**
 * Bad input against the whole cloud: each its exact status and a message that says what to do, and after each of them
 * there is neither a sandbox nor a process more than before.
 */

let cloud: CloudByHand
let url: string
let sandbox: HandSandbox
const strangersKey = `e2b_${randomBytes(20).toString('hex')}`

before(async () => {
  cloud = await startCloud({ ATOLL_RUNTIME: 'gvisor', ATOLL_MAX_SANDBOX_SECONDS: '3600' })
  await addTeam(cloud, strangersKey)
  url = cloud.installation.url
  sandbox = await cloud.createSandbox()
})
after(() => cloud[Symbol.asyncDispose]())

afterEach(async () => {
  const listed = await cloud.platform('GET', '/v2/sandboxes')
  assert.deepEqual(
    Object(listed.json).map((entry: HandSandbox) => entry.sandboxID),
    [sandbox.sandboxID],
  )
  const folders = await readdir(join(cloud.installation.dataDir, 'cells'))
  const names = await namesOf(cloud.installation.dataDir)
  assert.deepEqual(folders, [await cellOf(names, sandbox.sandboxID)])
  const processes = await unary('List', '{}')
  assert.deepEqual([processes.status, processes.text], [200, '{}'])
})

/** There is no operation for it yet. The store belongs to the server while that runs. */
async function addTeam({ installation }: CloudByHand, key: string): Promise<void> {
  await installation.interrupt()
  const store = new DatabaseSync(join(installation.dataDir, 'atoll.db'))
  const team = randomUUID()
  const hash = createHash('sha256').update(key).digest('hex')
  const now = Date.now()
  store.prepare('insert into teams (id, name, created_at) values (?, ?, ?)').run(team, 'x', now)
  store
    .prepare(
      'insert into api_keys (id, team_id, name, hash, mask, created_at) values (?, ?, ?, ?, ?, ?)',
    )
    .run(randomUUID(), team, 'x', hash, '{}', now)
  store.close()
  await installation.start()
}

function checkRefusal({ status, json, text }: Reply, expected: number, message: RegExp): void {
  assert.deepEqual([status, Object(json).code], [expected, expected], text)
  assert.match(Object(json).message, message)
}

suite('who asks', () => {
  const odd: [string, Record<string, string>, RegExp][] = [
    ['no key', {}, /send an API key as `X-API-Key: e2b_…`/],
    ['a key nobody has', { 'X-API-Key': `e2b_${'0'.repeat(40)}` }, /one that exists/],
    ['a short key', { 'X-API-Key': 'e2b_00' }, /40 hexadecimal digits/],
    ['a key in capitals', { 'X-API-Key': `E2B_${'A'.repeat(40)}` }, /40 hexadecimal digits/],
    ['a key that is SQL', { 'X-API-Key': "' or 1=1 --" }, /40 hexadecimal digits/],
    ['an empty key', { 'X-API-Key': '' }, /40 hexadecimal digits/],
    ['a token nobody has', { Authorization: `Bearer sk_e2b_${'0'.repeat(40)}` }, /one that exists/],
    ['a token of another kind', { Authorization: 'Bearer eyJhbGciOi' }, /sk_e2b_/],
    ['another scheme', { Authorization: basic('user') }, /send an API key/],
  ]
  const asked: [string, string][] = [
    ['POST', '/sandboxes'],
    ['POST', '/v2/sandboxes'],
    ['GET', '/v2/sandboxes'],
    ['GET', '/sandboxes/{id}'],
    ['DELETE', '/sandboxes/{id}'],
    ['POST', '/sandboxes/{id}/timeout'],
    ['POST', '/v2/sandboxes/{id}/connect'],
    ['GET', '/api-keys'],
    ['POST', '/api-keys'],
  ]
  for (const [name, credentials, message] of odd) {
    test(`${name} is 401 everywhere`, async () => {
      for (const [method, path] of asked) {
        const headers = { 'Content-Type': 'application/json', ...credentials }
        const call = { method, path: path.replace('{id}', sandbox.sandboxID), headers }
        const body = JSON.stringify({ templateID: 'base', timeout: 0, name: 'x' })
        const reply = await send(url, method === 'POST' ? { ...call, body } : call)
        checkRefusal(reply, 401, message)
      }
    })
  }

  test('a sandbox of another team is 404 to every operation, and not listed', async () => {
    const asStranger = (method: string, path: string, body?: object) =>
      cloud.platform(method, path, body, { 'X-API-Key': strangersKey })
    const { sandboxID: id } = sandbox
    for (const reply of [
      await asStranger('GET', `/sandboxes/${id}`),
      await asStranger('DELETE', `/sandboxes/${id}`),
      await asStranger('POST', `/sandboxes/${id}/timeout`, { timeout: 0 }),
      await asStranger('POST', `/sandboxes/${id}/connect`, { timeout: 0 }),
      await asStranger('POST', `/v2/sandboxes/${id}/connect`, {}),
    ]) {
      checkRefusal(reply, 404, new RegExp(`Sandbox ${id} was not found`))
    }
    const listed = await asStranger('GET', '/v2/sandboxes')
    assert.deepEqual([listed.status, listed.json], [200, []])
  })
})

suite('creating', () => {
  const base = { templateID: 'base' }
  const refused: [unknown, number, RegExp][] = [
    ['', 400, /body: is required/],
    ['{"templateID":', 400, /JSON/],
    ['{"templateID":"base"}}', 400, /JSON/],
    ['null', 400, /body: expected object/],
    [[base], 400, /body: expected object/],
    [{}, 400, /body\.templateID: is required/],
    [{ templateID: 7 }, 400, /body\.templateID: expected string/],
    [{ templateID: '../../etc' }, 400, /templateID is malformed/],
    [{ templateID: 'nobody-made-this' }, 404, /Template nobody-made-this was not found/],
    [{ templateID: 'base:never' }, 404, /base has no tag or build never/],
    [{ ...base, timeout: '60' }, 400, /body\.timeout: expected number/],
    [{ ...base, timeout: 1.5 }, 400, /body\.timeout/],
    [{ ...base, timeout: -1 }, 400, /body\.timeout/],
    [{ ...base, timeout: 0 }, 400, /timeout must be at least 1/],
    [{ ...base, timeout: 3601 }, 400, /timeout must be at most 3600/],
    [{ ...base, timeout: 2 ** 40 }, 400, /body\.timeout/],
    [{ ...base, metadata: 'a=b' }, 400, /body\.metadata/],
    [{ ...base, metadata: { a: 1 } }, 400, /body\.metadata\.a: expected string/],
    [{ ...base, metadata: { a: 'x'.repeat(70_000) } }, 400, /body\.metadata: must be at most/],
    [{ ...base, envVars: ['A=b'] }, 400, /body\.envVars/],
    [{ ...base, envVars: { A: null } }, 400, /body\.envVars\.A: expected string/],
    [{ ...base, envVars: { 'A=B': 'x' } }, 400, /body\.envVars.*names must not/],
    [{ ...base, envVars: { A: '\0' } }, 400, /body\.envVars\.A: must be well-formed/],
    [{ ...base, autoPause: 'yes' }, 400, /body\.autoPause: expected boolean/],
    [{ ...base, autoPauseMemory: 1 }, 400, /body\.autoPauseMemory: expected boolean/],
    [{ ...base, autoResume: true }, 400, /body\.autoResume: expected object/],
    [{ ...base, allow_internet_access: 'no' }, 400, /body\.allow_internet_access: expected bool/],
    [{ ...base, network: [] }, 400, /body\.network: expected object/],
    [{ ...base, network: { denyOut: '0.0.0.0/0' } }, 400, /body\.network\.denyOut: expected array/],
    [{ ...base, mcp: 'x' }, 400, /body\.mcp/],
    [{ ...base, iam: 'x' }, 400, /body\.iam: expected object/],
    [{ ...base, volumeMounts: {} }, 400, /body\.volumeMounts: expected array/],
  ]
  for (const path of ['/sandboxes', '/v2/sandboxes']) {
    for (const [body, status, message] of refused) {
      const shown = (typeof body === 'string' ? body : JSON.stringify(body)).slice(0, 70)
      test(`POST ${path} answers ${status} to ${shown || 'nothing'}`, async () => {
        checkRefusal(await cloud.platform('POST', path, body), status, message)
      })
    }
  }

  test('secure must be a boolean', async () => {
    const reply = await cloud.platform('POST', '/sandboxes', { ...base, secure: 'yes' })
    checkRefusal(reply, 400, /body\.secure: expected boolean/)
  })

  for (const framing of [{}, { 'Transfer-Encoding': 'chunked' }]) {
    test(`17 MiB are too many ${JSON.stringify(framing)}`, async () => {
      const body = JSON.stringify({ ...base, padding: 'x'.repeat(17 * 1024 * 1024) })
      const reply = await cloud.platform('POST', '/v2/sandboxes', body, framing)
      checkRefusal(reply, 413, /at most 16 MiB/)
    })
  }

  test('a body that is not called JSON is 415', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'nonsense']) {
      const headers = { 'Content-Type': type }
      const reply = await cloud.platform('POST', '/v2/sandboxes', base, headers)
      checkRefusal(reply, 415, /Content-Type: application\/json/)
    }
  })
})

suite('paths and methods of the platform', () => {
  const ids: [string, number, RegExp][] = [
    ['..', 400, /Invalid sandbox ID/],
    ['%2e%2e', 400, /Invalid sandbox ID/],
    ['..%2f..%2fetc%2fpasswd', 400, /Invalid sandbox ID/],
    ['I0ABCDEF', 400, /Invalid sandbox ID/],
    ['a-b-c', 400, /Invalid sandbox ID/],
    ['a%20b', 400, /Invalid sandbox ID/],
    ['a%00', 400, /Invalid sandbox ID/],
    ["a'or'1", 400, /Invalid sandbox ID/],
    ['%zz', 400, /not a valid url component/],
    ['i00000000000000000000', 404, /was not found/],
    ['a'.repeat(1000), 404, /was not found/],
    ['a'.repeat(2000), 414, /check the id/],
  ]
  for (const [id, status, message] of ids) {
    test(`the sandbox id ${id.slice(0, 40)} (${id.length}) is ${status}`, async () => {
      const { platform } = cloud
      checkRefusal(await platform('GET', `/sandboxes/${id}`), status, message)
      checkRefusal(await platform('DELETE', `/sandboxes/${id}`), status, message)
      for (const action of ['timeout', 'connect']) {
        const reply = await platform('POST', `/sandboxes/${id}/${action}`, { timeout: 9 })
        checkRefusal(reply, status, message)
      }
    })
  }

  for (const body of ['{', '{}', '{"timeout":"1"}', '{"timeout":-1}', `{"timeout":${2 ** 40}}`]) {
    test(`the timeout ${body} is refused and changes nothing`, async () => {
      const path = `/sandboxes/${sandbox.sandboxID}`
      const { endAt } = Object((await cloud.platform('GET', path)).json)
      for (const action of ['timeout', 'connect']) {
        checkRefusal(await cloud.platform('POST', `${path}/${action}`, body), 400, /body|JSON/i)
      }
      assert.equal(Object((await cloud.platform('GET', path)).json).endAt, endAt)
    })
  }

  for (const query of ['limit=0', 'limit=101', 'limit=x', 'state=dead', 'order=up', 'metadata=a']) {
    test(`the list refuses ${query}`, async () => {
      const field = query.replace(/=.*/, '')
      const reply = await cloud.platform('GET', `/v2/sandboxes?${query}`)
      checkRefusal(reply, 400, new RegExp(`query\\.${field}`))
    })
  }

  test('the list refuses a cursor it did not give', async () => {
    const reply = await cloud.platform('GET', '/v2/sandboxes?nextToken=AAAA')
    checkRefusal(reply, 400, /next ?token/i)
  })

  test('a method that a path does not have is 405, an unknown path 404', async () => {
    checkRefusal(await cloud.platform('PUT', '/v2/sandboxes'), 405, /use POST, GET/)
    checkRefusal(await cloud.platform('GET', '/v9/sandboxes'), 404, /openapi\.json/)
    checkRefusal(await cloud.platform('GET', '/../etc/passwd'), 404, /openapi\.json/)
  })
})

suite('routing headers', () => {
  const odd: [string, Record<string, string>, number, RegExp][] = [
    ['no port', { 'Svc-Sandbox-Port': '-' }, 400, /Svc-Sandbox-Port is missing/],
    ['no id', { 'Svc-Sandbox-Id': '-' }, 400, /Svc-Sandbox-Id is missing/],
    ['the port abc', { 'Svc-Sandbox-Port': 'abc' }, 400, /port must be a number/],
    ['the port -1', { 'Svc-Sandbox-Port': '-1' }, 400, /port must be a number/],
    ['an empty port', { 'Svc-Sandbox-Port': '' }, 400, /port must be a number/],
    ['the port 0', { 'Svc-Sandbox-Port': '0' }, 502, /nothing answers on its port 0/],
    ['the port 99999', { 'Svc-Sandbox-Port': '99999' }, 502, /nothing answers on its port 99999/],
    ['an id in capitals', { 'Svc-Sandbox-Id': 'ABC' }, 400, /lower-case letters and digits/],
    ['an id that is a path', { 'Svc-Sandbox-Id': '../x' }, 400, /lower-case letters and digits/],
    ['an id with a space', { 'Svc-Sandbox-Id': 'a b' }, 400, /lower-case letters and digits/],
    ['a list of ids', { 'Svc-Sandbox-Id': 'a, b' }, 400, /lower-case letters and digits/],
    ['an endless id', { 'Svc-Sandbox-Id': 'a'.repeat(64) }, 400, /lower-case letters and digits/],
    ['an unknown id', { 'Svc-Sandbox-Id': 'abc' }, 502, /The sandbox was not found/],
    ['two ids', { 'E2b-Sandbox-Id': 'abc' }, 400, /contradict each other/],
    ['an odd name', { Host: '49983-I_D.example.com' }, 400, /lower-case letters and digits/],
  ]
  for (const [name, change, status, message] of odd) {
    test(`${name} is ${status}`, async () => {
      const headers = Object.entries({ ...envdHeaders(sandbox), ...change })
      const kept = Object.fromEntries(headers.filter(([, value]) => value !== '-'))
      const call = rpc('Start', kept, frame(JSON.stringify(shell('true'))))
      const reply = await send(url, call)
      assert.equal(reply.status, status)
      assert.match(status === 502 ? Object(reply.json).message : reply.text, message)
    })
  }
})

function rpc(method: string, headers: Record<string, string>, body: string | Uint8Array): Call {
  const type = method === 'Start' ? 'application/connect+json' : 'application/json'
  const path = `/process.Process/${method}`
  return { method: 'POST', path, headers: { 'Content-Type': type, ...headers }, body }
}

function unary(method: string, body: string | Uint8Array, headers: Record<string, string> = {}) {
  return send(url, rpc(method, { ...envdHeaders(sandbox), ...headers }, body))
}

const harmless = JSON.stringify(shell('touch /tmp/started'))

suite('the outside of a process request', () => {
  const odd: [string, Partial<Call>, Record<string, string>, number, RegExp][] = [
    ['no version', {}, { 'Connect-Protocol-Version': '' }, 400, /Connect-Protocol-Version to 1/],
    ['version 2', {}, { 'Connect-Protocol-Version': '2' }, 400, /Connect-Protocol-Version to 1/],
    ['plain text', {}, { 'Content-Type': 'text/plain' }, 415, /application\/connect\+json/],
    ['unary JSON', {}, { 'Content-Type': 'application/json' }, 415, /application\/connect\+json/],
    ['no type', {}, { 'Content-Type': '' }, 415, /application\/connect\+json/],
    ['PUT', { method: 'PUT' }, {}, 405, /Use POST/],
    ['GET', { method: 'GET', body: '' }, {}, 405, /Use POST/],
    ['an unknown method', { path: '/process.Process/Stop' }, {}, 404, /not found/],
    ['an unknown service', { path: '/process.Processes/Start' }, {}, 404, /not found/],
    ['a wrong token', {}, { 'X-Access-Token': '0'.repeat(64) }, 401, /envdAccessToken/],
    ['an empty token', {}, { 'X-Access-Token': '' }, 401, /envdAccessToken/],
    [
      'no token',
      {},
      { 'X-Access-Token': '-' },
      401,
      /access token .* in the header X-Access-Token/,
    ],
  ]
  for (const [name, change, headers, status, message] of odd) {
    test(`${name} is ${status}`, async () => {
      const all = { ...envdHeaders(sandbox), ...headers }
      const kept = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== '-'))
      const reply = await send(url, { ...rpc('Start', kept, frame(harmless)), ...change })
      assert.equal(reply.status, status, reply.text)
      assert.match(reply.text, message)
    })
  }
})

suite('frames', () => {
  const gzip = { 'Connect-Content-Encoding': 'gzip' }
  const odd: [string, Uint8Array, Record<string, string>, string, RegExp][] = [
    ['a giant length', raw(0, 0xffff_ffff, '{}'), {}, 'resource_exhausted', /4294967295 is larger/],
    ['a truncated frame', raw(0, 100, '{}'), {}, 'invalid_argument', /incomplete envelope/],
    ['a truncated head', Buffer.from([0, 0]), {}, 'invalid_argument', /incomplete envelope/],
    ['no frame', Buffer.alloc(0), {}, 'unimplemented', /missing input message/],
    ['an end frame alone', frame('{}', endFlag), {}, 'unimplemented', /missing input message/],
    ['compression unannounced', frame(harmless, 1), {}, 'invalid_argument', /decompress/],
    ['compression that is none', frame(harmless, 1), gzip, 'invalid_argument', /decompress/],
    [
      'an unknown compression',
      frame(harmless, 1),
      { ...gzip, 'Connect-Content-Encoding': 'lz9' },
      'unimplemented',
      /supported encodings are gzip/,
    ],
    [
      'two requests',
      Buffer.concat([frame(harmless), frame(harmless)]),
      {},
      'unimplemented',
      /extra input message/,
    ],
    ['garbage JSON', frame('{nope'), {}, 'invalid_argument', /cannot decode message/],
    ['an array', frame('[]'), {}, 'invalid_argument', /cannot decode message/],
    [
      'a command of a wrong type',
      frame('{"process":{"cmd":5}}'),
      {},
      'invalid_argument',
      /cmd from JSON: expected string/,
    ],
    [
      'arguments of a wrong type',
      frame('{"process":{"cmd":"a","args":"b"}}'),
      {},
      'invalid_argument',
      /args from JSON/,
    ],
    [
      'a size of a wrong type',
      frame('{"process":{"cmd":"a"},"pty":{"size":{"cols":-1}}}'),
      {},
      'invalid_argument',
      /cols from JSON/,
    ],
    ['no command', frame('{"process":{}}'), {}, 'invalid_argument', /set process\.cmd/],
    ['a NUL', frame('{"process":{"cmd":"a\\u0000"}}'), {}, 'invalid_argument', /NUL/],
    [
      'an odd variable',
      frame('{"process":{"cmd":"a","envs":{"b=":"c"}}}'),
      {},
      'invalid_argument',
      /name of an environment variable/,
    ],
    [
      'a missing folder',
      frame('{"process":{"cmd":"a","cwd":"/nowhere"}}'),
      {},
      'invalid_argument',
      /'\/nowhere' does not exist/,
    ],
    [
      'an unknown user',
      frame(harmless),
      { Authorization: basic('stranger') },
      'unauthenticated',
      /no user 'stranger'/,
    ],
    [
      'a timeout in words',
      frame(harmless),
      { 'Connect-Timeout-Ms': 'soon' },
      'invalid_argument',
      /timeout value: soon/,
    ],
    [
      'a negative timeout',
      frame(harmless),
      { 'Connect-Timeout-Ms': '-1' },
      'invalid_argument',
      /timeout value: -1/,
    ],
    [
      'a huge timeout',
      frame(harmless),
      { 'Connect-Timeout-Ms': '9'.repeat(11) },
      'invalid_argument',
      /timeout value: 9/,
    ],
    [
      'a timeout of zero',
      frame(harmless),
      { 'Connect-Timeout-Ms': '0' },
      'deadline_exceeded',
      /timed out/,
    ],
  ]
  for (const [name, body, headers, code, message] of odd) {
    test(`${name} ends the stream with ${code}`, async () => {
      const reply = await send(url, rpc('Start', { ...envdHeaders(sandbox), ...headers }, body))
      assert.equal(reply.status, 200)
      const [only, ...others] = await Array.fromAsync(framesOf([reply.body]))
      assert.deepEqual([only?.flags, others], [endFlag, []])
      const { error } = JSON.parse(only?.payload.toString('utf8') ?? '')
      assert.equal(error.code, code)
      assert.match(error.message, message)
    })
  }

  test('none of them started anything', async () => {
    const ls = frame(JSON.stringify(shell('test ! -e /tmp/started')))
    const { body } = await send(url, rpc('Start', envdHeaders(sandbox), ls))
    assert.match(body.toString('utf8'), /"status":"exit status 0"/)
  })
})

/** A frame whose length is a lie. */
function raw(flags: number, length: number, payload: string): Uint8Array {
  const bytes = frame(payload, flags)
  bytes.writeUInt32BE(length, 1)
  return bytes
}

suite('requests about a process', () => {
  const nobody = '{"process":{"pid":999999}}'
  const odd: [string, string, string, Record<string, string>, number, string, RegExp][] = [
    ['Update', 'garbage', '{nope', {}, 400, 'invalid_argument', /cannot decode message/],
    ['Update', 'nothing', '', {}, 400, 'invalid_argument', /cannot decode message/],
    ['Update', 'a pid in words', '{"process":{"pid":"x"}}', {}, 400, 'invalid_argument', /pid/],
    ['Update', 'a negative pid', '{"process":{"pid":-1}}', {}, 400, 'invalid_argument', /pid/],
    ['Update', 'no selector', '{}', {}, 501, 'unimplemented', /by pid or tag/],
    ['Update', 'an unknown pid', nobody, {}, 404, 'not_found', /No process with pid 999999/],
    ['Update', 'an unknown tag', '{"process":{"tag":"x"}}', {}, 404, 'not_found', /No process/],
    [
      'Update',
      'no gzip',
      nobody,
      { 'Content-Encoding': 'gzip' },
      400,
      'invalid_argument',
      /decompr/,
    ],
    [
      'Update',
      'no protobuf',
      '\xff',
      { 'Content-Type': 'application/proto' },
      400,
      'invalid_argument',
      /parse binary/,
    ],
    [
      'Update',
      'an unknown user',
      nobody,
      { Authorization: basic('stranger') },
      401,
      'unauthenticated',
      /no user 'stranger'/,
    ],
    ['SendInput', 'an unknown pid', nobody, {}, 404, 'not_found', /No process/],
    ['SendSignal', 'an unknown pid', nobody, {}, 404, 'not_found', /No process/],
    ['CloseStdin', 'an unknown pid', nobody, {}, 404, 'not_found', /No process/],
  ]
  for (const [method, name, body, headers, status, code, message] of odd) {
    test(`${method} with ${name} is ${status}`, async () => {
      const reply = await unary(method, body, headers)
      assert.deepEqual([reply.status, Object(reply.json).code], [status, code], reply.text)
      assert.match(Object(reply.json).message, message)
    })
  }
})

suite('the server', () => {
  test('refuses a head of 40 KB on either way', async () => {
    const junk = { 'X-Junk': 'x'.repeat(40_000) }
    checkRefusal(await cloud.platform('GET', '/v2/sandboxes', undefined, junk), 431, /16 KiB/)
    checkRefusal(await unary('List', '{}', junk), 431, /16 KiB/)
  })

  test('is healthy after all this, and saw nothing that it had not foreseen', async () => {
    const health = await send(url, { path: '/health' })
    assert.deepEqual([health.status, health.text], [200, 'Health check successful'])
    const log = await readFile(join(cloud.installation.dataDir, 'logs/server.log'), 'utf8')
    const lines = log.trim().split('\n')
    assert.ok(lines.length > 100)
    assert.deepEqual(
      lines.filter((line) => JSON.parse(line).level >= 50),
      [],
    )
  })
})
