import assert from 'node:assert/strict'
import { createServer as createNetServer } from 'node:net'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { ownHost, rawClient, startTestEdge } from '../sim/test-edge.ts'

const envd = 'Svc-Sandbox-Id: abc\r\nSvc-Sandbox-Port: 49983\r\n'

async function setup(t: TestContext) {
  const testEdge = await startTestEdge()
  t.after(() => testEdge.close())
  const exchange = async (text: string) => {
    const client = rawClient(testEdge.edgePort, text)
    const done = () => client.state() !== 'open' || client.received().includes('\r\n\r\n')
    await waitFor('an answer', done)
    client.socket.destroy()
    return client.received()
  }
  return { ...testEdge, exchange }
}

const internalTargets: [string, string][] = [
  ['plainly', 'POST /init'],
  ['by another method', 'PROPFIND /init'],
  ['with percent-encoding', 'POST /%69%6e%69%74'],
  ['with two slashes', 'POST //init'],
  ['with dot segments', 'POST /x/.././init'],
  ['as an absolute target', 'POST http://localhost/init'],
  ['as a path on another host', 'POST //envd/init'],
  ['with a leading zero in the port', 'POST /init'],
]

for (const [name, line] of internalTargets) {
  test(`an internal path ${name} is 404 before any lookup`, async (t) => {
    const { exchange, node } = await setup(t)
    const routing = name.includes('zero') ? envd.replace('49983', '049983') : envd
    const answer = await exchange(
      `${line} HTTP/1.1\r\nHost: localhost\r\n${routing}Content-Length: 0\r\n\r\n`,
    )
    const body: unknown = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))
    const message = 'The path /init is not open to clients'
    assert.deepEqual([answer.slice(9, 12), body], ['404', { message, path: '/init', code: 404 }])
    assert.equal(node.begun('get'), 0)
  })
}

test('an internal path is open on ports other than envd', async (t) => {
  const { url, serve } = await setup(t)
  const headers = await serve('abc', (req, res) => void res.end(req.url))
  assert.equal(await (await fetch(`${url}/init`, { headers })).text(), '/init')
})

const smuggling: [string, string][] = [
  ['both a length and chunks', 'Content-Length: 4\r\nTransfer-Encoding: chunked'],
  ['two lengths', 'Content-Length: 4\r\nContent-Length: 5'],
  ['a length with a sign', 'Content-Length: +4'],
  ['a coding after chunked', 'Transfer-Encoding: chunked, identity'],
  ['an unknown coding', 'Transfer-Encoding: xchunked'],
  ['a space before the colon', 'Transfer-Encoding : chunked'],
  ['a folded header', 'X: a\r\n Transfer-Encoding: chunked'],
  ['a bare line feed', 'X: a\nTransfer-Encoding: chunked'],
  ['a coding inside chunked', 'Transfer-Encoding: gzip, chunked'],
]

for (const [name, headers] of smuggling) {
  test(`a request with ${name} does not reach the sandbox`, async (t) => {
    const { exchange, serve } = await setup(t)
    let reached = 0
    const routing = await serve('abc', (_, res) => {
      reached += 1
      res.end()
    })
    const lines = Object.entries(routing).map(([key, value]) => `${key}: ${value}\r\n`)
    const answer = await exchange(
      `POST / HTTP/1.1\r\nHost: localhost\r\n${lines.join('')}${headers}\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n`,
    )
    assert.match(answer, /^HTTP\/1.1 (400|501) /)
    assert.equal(reached, 0)
  })
}

test('a Content-Length named in Connection still frames the request', async (t) => {
  const { exchange, serve } = await setup(t)
  const seen: string[] = []
  const routing = await serve('abc', (req, res) => {
    seen.push(`${req.url} ${req.headers['content-length']}`)
    req.resume().on('end', () => res.end('done'))
  })
  const lines = Object.entries(routing).map(([key, value]) => `${key}: ${value}\r\n`)
  const inner = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n'
  const answer = await exchange(
    `POST /outer HTTP/1.1\r\nHost: localhost\r\n${lines.join('')}Connection: content-length\r\n` +
      `Content-Length: ${inner.length}\r\n\r\n${inner}`,
  )
  assert.match(answer, /^HTTP\/1.1 200 /)
  assert.deepEqual(seen, [`/outer ${inner.length}`])
})

test('of several Host headers only the one used for routing is forwarded', async (t) => {
  const { exchange, serve } = await setup(t)
  let hosts: string[] = []
  const routing = await serve('abc', (req, res) => {
    hosts = req.headersDistinct['host'] ?? []
    res.end()
  })
  const lines = Object.entries(routing).map(([key, value]) => `${key}: ${value}\r\n`)
  await exchange(`GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n${lines.join('')}\r\n`)
  assert.deepEqual(hosts, ['localhost'])
})

test('CONNECT and requests without a host are not served', async (t) => {
  const { exchange } = await setup(t)
  assert.equal(await exchange('CONNECT 10.0.0.1:22 HTTP/1.1\r\nHost: x\r\n\r\n'), '')
  assert.match(await exchange('GET / HTTP/1.1\r\n\r\n'), /^HTTP\/1.1 400 /)
  assert.match(await exchange('GET / HTTP/1.0\r\n\r\n'), /^HTTP\/1.1 400 /)
})

test('a header that is too long is refused, and the edge keeps working', async (t) => {
  const { exchange } = await setup(t)
  const long = `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`
  assert.match(await exchange(long), /^HTTP\/1.1 431 /)
  assert.match(await exchange('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'), /^HTTP\/1.1 400 /)
})

/** Invalid HTTP responses that a program in a sandbox can send. */
const hostileAnswers: [string, string][] = [
  ['a control character in the reason', 'HTTP/1.1 200 O\x01K\r\nContent-Length: 0\r\n\r\n'],
  ['a status below 100', 'HTTP/1.1 099 No\r\n\r\n'],
  [
    'a switch that the client did not request',
    'HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
  ],
  ['no HTTP at all', 'SSH-2.0-OpenSSH_9.2\r\n'],
  ['nothing', ''],
  ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
  ['a header without end', `HTTP/1.1 200 OK\r\nX: ${'a'.repeat(50_000)}`],
]

for (const [name, bytes] of hostileAnswers) {
  test(`a sandbox that answers ${name} is a 502, and the edge keeps working`, async (t) => {
    const { url, serve } = await setup(t)
    const program = createNetServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.end(bytes, 'latin1'))
    })
    const headers = await serve('abc', program)
    for (let time = 0; time < 2; time += 1) {
      const reply = await fetch(url, { headers })
      assert.deepEqual(
        [reply.status, reply.headers.get('content-type')],
        [502, 'application/json; charset=utf-8'],
      )
      await reply.text()
    }
  })
}

test('invalid early hints do not stop the response', async (t) => {
  const { exchange, serve } = await setup(t)
  const program = createNetServer((socket) => {
    socket.on('error', () => {})
    const hint = 'HTTP/1.1 103 Early Hints\r\nLink: not a link\r\n\r\n'
    socket.once('data', () => socket.end(`${hint}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`))
  })
  const { Host } = ownHost(await serve('abc', program))
  const answer = await exchange(`GET / HTTP/1.1\r\nHost: ${Host}\r\n\r\n`)
  assert.match(answer, /^HTTP\/1.1 200 [^]*\r\n\r\nok$/)
})

test('the error page escapes all text of the request', async (t) => {
  const { exchange } = await setup(t)
  const page = await exchange(
    `GET /<script>alert(1)</script> HTTP/1.1\r\nHost: localhost\r\n${envd}` +
      'User-Agent: Mozilla/5.0\r\nAccept: text/html\r\nSec-Fetch-Mode: navigate\r\n\r\n',
  )
  assert.match(page, /^HTTP\/1.1 502 [^]*\r\nContent-Type: text\/html; charset=utf-8\r\n/)
  assert.match(page, /\r\nContent-Security-Policy: default-src 'none'/)
  assert.match(page, /\r\n\r\n<html[^]*abc[^]*<\/html>$/)
  assert.doesNotMatch(page, /<script/)
})
