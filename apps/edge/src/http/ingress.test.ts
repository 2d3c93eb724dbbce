import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { run } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { envdPort } from '../domain/internal-path.ts'
import type { SimulatedIngress } from '@atoll/simulated-node/sandbox'
import { rawClient, startTestEdge } from '../sim/test-edge.ts'

async function setup(t: TestContext) {
  const testEdge = await startTestEdge()
  t.after(() => testEdge.close())
  return {
    ...testEdge,
    serveWith: (program: Parameters<typeof testEdge.serve>[1], ingress: SimulatedIngress) =>
      testEdge.serve('abc', program, '127.0.0.2', (port) => ({ httpsPorts: [port], ...ingress })),
  }
}

const isPrivate = { trafficAccessToken: 'traffic-secret', httpsPorts: [] }
const sayHost = ({ headers }: IncomingMessage, res: ServerResponse) =>
  void res.end(JSON.stringify([headers.host, headers['x-forwarded-host']]))

for (const name of [
  'e2b-traffic-access-token',
  'E2B-Traffic-Access-Token',
  'Svc-Traffic-Access-Token',
]) {
  test(`a private sandbox accepts its token in ${name} and passes it to the program`, async (t) => {
    const { url, serveWith } = await setup(t)
    const headers = await serveWith((req, res) => {
      res.end(req.headers[name.toLowerCase()])
    }, isPrivate)
    const reply = await fetch(url, { headers: { ...headers, [name]: 'traffic-secret' } })
    assert.deepEqual([reply.status, await reply.text()], [200, 'traffic-secret'])
  })
}

const refused: [string, Record<string, string>, RegExp][] = [
  ['no token', {}, /e2b-traffic-access-token is missing/],
  ['a wrong token', { 'e2b-traffic-access-token': 'guess' }, /is wrong/],
  ['an empty token', { 'e2b-traffic-access-token': '' }, /is wrong/],
  ['a part of the token', { 'e2b-traffic-access-token': 'traffic-secre' }, /is wrong/],
  ['the token of envd', { 'X-Access-Token': 'traffic-secret' }, /is missing/],
  ['the token in a cookie', { Cookie: 'e2b-traffic-access-token=traffic-secret' }, /is missing/],
]

for (const [name, given, message] of refused) {
  test(`a private sandbox with ${name} is 403 in JSON, as a page and for an upgrade`, async (t) => {
    const { url, edgePort, serveWith } = await setup(t)
    let reached = false
    const headers = { ...(await serveWith(() => (reached = true), isPrivate)), ...given }
    const reply = await fetch(`${url}/?e2b-traffic-access-token=traffic-secret`, { headers })
    const body: unknown = await reply.json()
    assert.ok(typeof body === 'object' && body !== null && 'message' in body)
    assert.match(String(body.message), message)
    const expected = { sandboxId: 'abc', message: body.message, code: 403 }
    assert.deepEqual([reply.status, body], [403, expected])
    const browser = rawClient(edgePort, requestText(headers, ['User-Agent: Mozilla/5.0']))
    await waitFor('the page', () => /<html[^]*<\/html>/.test(browser.received()))
    assert.match(browser.received(), message)
    const upgrade = rawClient(
      edgePort,
      requestText(headers, ['Connection: Upgrade', 'Upgrade: websocket']),
    )
    await waitFor('the refusal', () => upgrade.received().startsWith('HTTP/1.1 403 '))
    assert.equal(reached, false)
  })
}

test('envd of a private sandbox needs no traffic token', async (t) => {
  const { url, node } = await setup(t)
  node.start('abc', '127.0.0.2', isPrivate)
  const headers = { 'Svc-Sandbox-Id': 'abc', 'Svc-Sandbox-Port': String(envdPort) }
  assert.equal((await fetch(url, { headers })).status, 502) // the port is closed
})

test('a program sees the masked host as Host, and the original as X-Forwarded-Host', async (t) => {
  const { url, serveWith } = await setup(t)
  const mask = { maskRequestHost: 'localhost:${PORT}', httpsPorts: [] }
  const headers = await serveWith(sayHost, mask)
  const reply = await fetch(url, { headers: { ...headers, 'X-Forwarded-Host': 'evil' } })
  const { host } = new URL(url)
  assert.deepEqual(await reply.json(), [`localhost:${headers['Svc-Sandbox-Port']}`, host])
})

test('an upgrade sees the masked host too', async (t) => {
  const { edgePort, serveWith } = await setup(t)
  const headers = await serveWith(sayHost, { maskRequestHost: 'app.test', httpsPorts: [] })
  const client = rawClient(edgePort, requestText(headers, ['Connection: Upgrade', 'Upgrade: x']))
  await waitFor('the answer', () => client.received().includes('["app.test","localhost"]'))
})

test('a TLS port is reached by TLS with any certificate', async (t) => {
  const { url, edgePort, serveWith } = await setup(t)
  const secure = createSecureServer(await certificate(), (req, res) => {
    req.resume().once('end', () => res.end(`${req.method} over TLS to ${req.headers.host}`))
  })
  secure.on('upgrade', (_, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n')
    socket.pipe(socket)
  })
  const headers = await serveWith(secure, {})
  const reply = await fetch(url, { method: 'POST', headers, body: 'x'.repeat(1_000_000) })
  assert.equal(await reply.text(), `POST over TLS to ${new URL(url).host}`)
  const text = requestText(headers, ['Connection: Upgrade', 'Upgrade: x'])
  const client = rawClient(edgePort, `${text}hello`)
  await waitFor('the echo', () => client.received().endsWith('hello'))
})

test('a TLS port that serves plain text is 502', async (t) => {
  const { url, serveWith } = await setup(t)
  const headers = await serveWith((_, res) => void res.end('plain'), {})
  assert.equal((await fetch(url, { headers })).status, 502)
})

test('when the sandbox ends, a running response over TLS is reset', async (t) => {
  const { edgePort, node, serveWith } = await setup(t)
  const secure = createSecureServer(await certificate(), (_, res) => void res.write('endless'))
  const client = rawClient(edgePort, requestText(await serveWith(secure, {})))
  await waitFor('the beginning', () => client.received().includes('endless'))
  node.end('abc')
  await waitFor('the reset', () => client.state() === 'reset')
})

async function certificate() {
  const pem = await run('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
    ...['-keyout', '-', '-subj', '/CN=whoever', '-days', '1'],
  ])
  return { key: pem, cert: pem }
}

function requestText(headers: Record<string, string>, more: readonly string[] = []): string {
  const given = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return ['GET / HTTP/1.1', 'Host: localhost', ...given, ...more, '', ''].join('\r\n')
}
