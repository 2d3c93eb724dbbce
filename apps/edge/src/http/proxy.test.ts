import assert from 'node:assert/strict'
import { createServer, request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { createServer as createNetServer } from 'node:net'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { ownHost, rawClient, startTestEdge } from '../sim/test-edge.ts'

async function setup(t: TestContext, config = {}, parts: { maxRequests?: number } = {}) {
  const testEdge = await startTestEdge(config, parts)
  t.after(() => testEdge.close())
  return testEdge
}

test('method, path, headers and body are forwarded, and so are status, headers and body of the response', async (t) => {
  const { url, serve } = await setup(t)
  const headers = await serve('abc', async (req, res) => {
    const seen = [req.method, req.url, req.headers['x-access-token'], await textOf(req)]
    res.writeHead(418, 'Teapot', [
      ['X-Twice', 'a'],
      ['X-Twice', 'b'],
    ])
    res.end(JSON.stringify(seen))
  })
  const reply = await fetch(`${url}/a/../b%20c?d=%2F`, {
    method: 'PATCH',
    headers: { ...headers, 'X-Access-Token': 'secret' },
    body: 'hello',
  })
  assert.deepEqual(
    [reply.status, reply.statusText, reply.headers.get('x-twice'), await reply.json()],
    [418, 'Teapot', 'a, b', ['PATCH', '/b%20c?d=%2F', 'secret', 'hello']],
  )
})

test('hop-by-hop and forwarding headers are dropped in both directions', async (t) => {
  const { edgePort, serve } = await setup(t)
  let seen: string[] = []
  const headers = await serve('abc', (req, res) => {
    seen = req.rawHeaders
    res.writeHead(200, { Connection: 'close, X-Private', 'X-Private': '1', 'X-Public': '2' })
    res.end('ok')
  })
  const client = rawClient(
    edgePort,
    requestText('GET /', headers, [
      'Connection: keep-alive, X-Secret-Hop, Content-Length',
      'X-Secret-Hop: 1',
      'Keep-Alive: timeout=5',
      'Proxy-Authorization: Basic x',
      'TE: trailers',
      'Forwarded: for=1.2.3.4',
      'X-Forwarded-For: 1.2.3.4',
      'X-Forwarded-Host: evil',
      'X-Kept: yes',
      'Upgrade-Insecure-Requests: 1',
    ]),
  )
  const answer = await waitFor(
    'an answer',
    () => client.received().includes('ok') && client.received(),
  )
  assert.deepEqual(
    seen.filter((_, at) => at % 2 === 0),
    ['Host', ...Object.keys(headers), 'X-Kept', 'Upgrade-Insecure-Requests', 'TE', 'Connection'],
  )
  assert.match(answer, /X-Public: 2/)
  assert.doesNotMatch(answer, /X-Private/i)
  assert.match(answer, /Connection: keep-alive/)
})

test('a body streams in and out: first bytes arrive before the last are sent', async (t) => {
  const { url, serve } = await setup(t)
  const headers = await serve('abc', (req, res) => {
    res.flushHeaders()
    req.pipe(res) // echoes each chunk
  })
  const outgoing = request(url, { method: 'POST', headers })
  outgoing.write('one')
  const reply = await responseTo(outgoing)
  reply.setEncoding('utf8')
  let echoed = ''
  reply.on('data', (chunk: string) => (echoed += chunk))
  await waitFor('the first piece', () => echoed === 'one')
  outgoing.end('two')
  await waitFor('the rest', () => echoed === 'onetwo')
})

test('response headers are sent before the body', async (t) => {
  const { url, serve } = await setup(t)
  let finish = () => {}
  const headers = await serve('abc', (_, res) => {
    res.writeHead(200, { 'X-Early': '1' })
    res.flushHeaders()
    finish = () => res.end('late')
  })
  const reply = await fetch(url, { headers })
  assert.equal(reply.headers.get('x-early'), '1')
  finish()
  assert.equal(await reply.text(), 'late')
})

test('ten megabytes are forwarded unchanged, both ways', async (t) => {
  const { url, serve } = await setup(t)
  const headers = await serve('abc', (req, res) => void req.pipe(res))
  const body = Buffer.alloc(10 * 1024 * 1024, 'atoll')
  const reply = await fetch(url, { method: 'POST', headers, body })
  assert.ok(body.equals(Buffer.from(await reply.arrayBuffer())))
})

for (const [name, status, sent] of [
  ['204', 204, undefined],
  ['304', 304, undefined],
  ['a response to HEAD', 200, 'HEAD'],
] as const) {
  test(`${name} has no body, and the connection stays usable`, async (t) => {
    const { edgePort, serve } = await setup(t)
    const headers = await serve('abc', (req, res) => {
      if (req.url === '/next') res.end('next')
      else {
        res.writeHead(status, { 'Content-Length': '5' })
        res.end()
      }
    })
    const first = requestText(`${sent ?? 'GET'} /`, headers)
    const client = rawClient(edgePort, first + requestText('GET /next', headers))
    const answer = await waitFor('both answers', () =>
      client.received().endsWith('next') ? client.received() : undefined,
    )
    assert.match(answer, new RegExp(`^HTTP/1.1 ${status} `))
    assert.equal(/^[^]*?\r\n\r\n/.exec(answer)?.[0].includes('Content-Length: 5'), status !== 204)
  })
}

test('trailers are forwarded both ways, except framing and routing headers', async (t) => {
  const { edgePort, serve } = await setup(t)
  const headers = await serve('abc', async (req, res) => {
    await textOf(req)
    res.writeHead(200, { Trailer: 'X-Sum' })
    res.write(JSON.stringify(req.trailers))
    res.addTrailers({ 'X-Sum': 'of-answer' })
    res.end()
  })
  const body = '3\r\nabc\r\n0\r\nX-Sum: of-request\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n'
  const text = requestText('POST /', headers, ['Transfer-Encoding: chunked']) + body
  const client = rawClient(edgePort, text)
  const answer = await waitFor('the trailer', () =>
    client.received().includes('X-Sum: of-answer') ? client.received() : undefined,
  )
  assert.match(answer, /\{"x-sum":"of-request"\}/)
})

test('a client that expects 100 gets it, and early hints are forwarded', async (t) => {
  const { edgePort, serve } = await setup(t)
  const headers = await serve('abc', async (req, res) => {
    res.writeEarlyHints({ link: '</a.css>; rel=preload' })
    res.end(`${req.headers.expect} ${await textOf(req)}`)
  })
  const expecting = ['Expect: 100-continue', 'Content-Length: 2']
  const text = requestText('PUT /', ownHost(headers), expecting)
  const client = rawClient(edgePort, text)
  await waitFor('100', () => client.received().startsWith('HTTP/1.1 100 Continue'))
  client.socket.write('hi')
  await waitFor('the answer', () => client.received().endsWith('undefined hi'))
  assert.match(client.received(), /HTTP\/1.1 103 Early Hints\r\nLink: <\/a.css>; rel=preload/)
})

test('a response that starts before the end of the request is forwarded at once', async (t) => {
  const { edgePort, serve } = await setup(t)
  const headers = await serve('abc', (_, res) => void res.writeHead(413).end('too large'))
  const text = requestText('POST /', headers, ['Content-Length: 1000000'])
  const client = rawClient(edgePort, `${text}abc`)
  await waitFor('the answer', () => client.received().includes('too large'))
})

test('a client that disconnects ends the request in the sandbox', async (t) => {
  const { edgePort, serve } = await setup(t)
  let left = false
  let arrived = false
  const headers = await serve('abc', (req, res) => {
    arrived = true
    res.write('stream')
    res.once('close', () => (left = true))
  })
  const client = rawClient(edgePort, requestText('GET /', headers))
  await waitFor('the request', () => arrived)
  client.socket.destroy()
  await waitFor('the sandbox to notice', () => left)
})

test('pipelined requests end too when the client disconnects', async (t) => {
  const { edgePort, serve } = await setup(t)
  let open = 0
  const headers = await serve('abc', (_, res) => {
    open += 1
    res.write('x'.repeat(100))
    res.once('close', () => (open -= 1))
  })
  const client = rawClient(edgePort, requestText('GET /', headers).repeat(12))
  await waitFor('all twelve', () => open === 12)
  client.socket.destroy()
  await waitFor('none', () => open === 0)
})

test('a truncated response of the sandbox is reset for the client', async (t) => {
  const { edgePort, serve } = await setup(t)
  let cut = () => {}
  const headers = await serve('abc', (req, res) => {
    res.write('partial')
    cut = () => req.socket.destroy()
  })
  const client = rawClient(edgePort, requestText('GET /', headers))
  await waitFor('the beginning', () => client.received().includes('partial'))
  cut()
  await waitFor('the reset', () => client.state() === 'reset')
})

test('when the sandbox ends, a running response is reset, and a new request gets 502', async (t) => {
  const { edgePort, url, node, serve } = await setup(t)
  const headers = await serve('abc', (_, res) => void res.write('endless'))
  const other = await serve('other', (_, res) => void res.write('endless'), '127.0.0.3')
  const client = rawClient(edgePort, requestText('GET /', headers))
  const bystander = rawClient(edgePort, requestText('GET /', other))
  for (const { received } of [client, bystander]) {
    await waitFor('the beginning', () => received().includes('endless'))
  }
  node.end('abc')
  await waitFor('the reset', () => client.state() === 'reset')
  const reply = await fetch(url, { headers })
  assert.deepEqual([reply.status, bystander.state()], [502, 'open'])
})

test('when the sandbox ends, a request without a response is reset', async (t) => {
  const { edgePort, node, serve } = await setup(t)
  let arrived = false
  const headers = await serve('abc', () => (arrived = true))
  const client = rawClient(edgePort, requestText('GET /', headers))
  await waitFor('the request', () => arrived)
  node.end('abc')
  await waitFor('the reset', () => client.state() === 'reset')
})

test('when the sandbox ends during the connect, the response is sandbox not found', async (t) => {
  const { url, node } = await setup(t)
  node.start('abc', '127.0.0.2')
  node.start('other', '127.0.0.3')
  const headers = { 'Svc-Sandbox-Id': 'abc', 'Svc-Sandbox-Port': '1' }
  const replies = [1, 2, 3].map(() => fetch(url, { headers }))
  await fetch(url, { headers: { ...headers, 'Svc-Sandbox-Id': 'nosuch' } })
  node.end('abc')
  const tried = fetch(url, { headers: { ...headers, 'Svc-Sandbox-Id': 'other' } })
  const first = await Promise.race([Promise.all(replies), tried])
  assert.ok(Array.isArray(first), 'a reply waited for the last try')
  await tried
  for (const reply of await Promise.all(replies)) {
    const body: unknown = await reply.json()
    const message = 'The sandbox was not found'
    assert.deepEqual([reply.status, body], [502, { sandboxId: 'abc', message, code: 502 }])
  }
})

test('an unknown sandbox is 502 with the message that clients match', async (t) => {
  const { url } = await setup(t)
  const reply = await fetch(`${url}/health`, {
    headers: { 'E2b-Sandbox-Id': 'nosuch', 'E2b-Sandbox-Port': '49983' },
  })
  assert.deepEqual(
    [reply.status, reply.headers.get('content-type'), await reply.json()],
    [
      502,
      'application/json; charset=utf-8',
      { sandboxId: 'nosuch', message: 'The sandbox was not found', code: 502 },
    ],
  )
})

for (const port of ['1', '0', '70000']) {
  test(`closed port ${port} is 502 and named in the response`, async (t) => {
    const { url, node } = await setup(t)
    node.start('abc', '127.0.0.2')
    const headers = { 'Svc-Sandbox-Id': 'abc', 'Svc-Sandbox-Port': port }
    const reply = await fetch(url, { method: 'POST', headers, body: 'x' })
    const body: unknown = await reply.json()
    const message = `The sandbox is running, but nothing answers on its port ${port}`
    assert.deepEqual(
      [reply.status, body],
      [502, { sandboxId: 'abc', message, port: Number(port), code: 502 }],
    )
  })
}

test('the edge waits for a port that opens within a second', async (t) => {
  const { url, node } = await setup(t)
  const late = createServer((_, res) => void res.end('late'))
  const probe = createNetServer()
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.2', resolve))
  const address = probe.address()
  assert.ok(address !== null && typeof address === 'object')
  await new Promise((resolve) => probe.close(resolve))
  node.start('abc', '127.0.0.2')
  const headers = { 'Svc-Sandbox-Id': 'abc', 'Svc-Sandbox-Port': String(address.port) }
  const reply = fetch(url, { headers })
  setTimeout(() => late.listen(address.port, '127.0.0.2'), 250)
  t.after(() => late.close())
  assert.equal(await (await reply).text(), 'late')
})

test('requests above the limit of one sandbox are 429 and name the limit', async (t) => {
  const { url, edgePort, serve } = await setup(t, { ATOLL_EDGE_MAX_REQUESTS_PER_SANDBOX: 1 })
  const headers = await serve('abc', (_, res) => void res.write('open'))
  const client = rawClient(edgePort, requestText('GET /', headers))
  await waitFor('the first', () => client.received().includes('open'))
  const reply = await fetch(url, { headers })
  const body: unknown = await reply.json()
  const message = 'The sandbox has reached its limit of open requests (1)'
  assert.deepEqual(
    [reply.status, body],
    [429, { sandboxId: 'abc', connectionLimit: 1, message, code: 429 }],
  )
  client.socket.destroy()
  await waitFor('room again', async () => {
    const again = await fetch(url, { headers })
    await again.body?.cancel()
    return again.status === 200
  })
})

test('pipelined requests on one connection respect the limit for all sandboxes', async (t) => {
  const { url, edgePort, serve } = await setup(t, {}, { maxRequests: 3 })
  let open = 0
  let most = 0
  const program = createNetServer((socket) => {
    most = Math.max(most, (open += 1))
    socket.on('error', () => {}).on('close', () => (open -= 1))
    socket.resume()
  })
  const flooded = await serve('abc', program)
  const other = await serve('xyz', (_, res) => void res.end('ok'), '127.0.0.3')
  const flood = rawClient(edgePort, requestText('GET /', flooded).repeat(500))
  await waitFor('the flood', () => open === 3)
  const ask = () => fetch(url, { headers: other })
  const refused = await ask()
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1'])
  assert.match(await refused.text(), /Too many requests to sandboxes are open/)
  flood.socket.destroy()
  await waitFor('all to be over', () => open === 0)
  assert.equal(most, 3)
  const answered = await waitFor('room', async () => {
    const reply = await ask()
    const text = await reply.text()
    return reply.ok && text
  })
  assert.equal(answered, 'ok')
})

function requestText(
  line: string,
  headers: Record<string, string>,
  more: readonly string[] = [],
): string {
  const all = { Host: 'localhost', ...headers }
  const given = Object.entries(all).map(([name, value]) => `${name}: ${value}`)
  return [`${line} HTTP/1.1`, ...given, ...more, '', ''].join('\r\n')
}

async function textOf(message: IncomingMessage): Promise<string> {
  message.setEncoding('utf8')
  let text = ''
  for await (const chunk of message) text += String(chunk)
  return text
}

function responseTo(outgoing: ReturnType<typeof request>): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    outgoing.once('response', resolve)
    outgoing.once('error', reject)
  })
}
