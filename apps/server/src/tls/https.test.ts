import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, request as requestPlain } from 'node:http'
import type { IncomingMessage, RequestListener } from 'node:http'
import { request } from 'node:https'
import { connect as connectTcp } from 'node:net'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { simulateNode } from '@atoll/simulated-node/node'
import { silentLogger } from '@atoll/kit/log'
import { freePort } from '@atoll/kit/testing/free-port'
import { waitFor } from '@atoll/kit/wait'
import { loadServerConfig } from '../config.ts'
import { startServer } from '../server.ts'
import { localCaFiles } from './local-ca.ts'
import { setUpLocalCa } from './set-up-local-ca.ts'

const hostName = 'atoll.test'

interface Call {
  readonly host: string
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer
  readonly localAddress?: string
}

/** Starts a server with a local CA and a simulated node. Programs in sandboxes listen on 127.0.0.2. */
async function setup(t: TestContext, settings: Record<string, string> = {}) {
  const dataDir = await mkdtemp(join(tmpdir(), 'atoll-https-'))
  t.after(() => rm(dataDir, { recursive: true, force: true }))
  const port = await freePort()
  const domain = `${hostName}:${port}`
  const env = {
    ATOLL_DATA_DIR: dataDir,
    ATOLL_DOMAIN: domain,
    ATOLL_LISTEN: '127.0.0.1:0',
    ...settings,
  }
  await setUpLocalCa(env, { replace: false })
  const node = simulateNode()
  const startNode = async () => ({ transport: node.transport, async close() {} })
  const server = await startServer(loadServerConfig(env), { log: silentLogger, startNode })
  t.after(() => server.close())
  const readCa = () => readFile(localCaFiles(dataDir).certificate, 'utf8')
  const ca = await readCa()
  const address = { host: '127.0.0.1', port }

  const call = async ({ host, body, ...options }: Call): Promise<IncomingMessage> => {
    const servername = host.split(':', 1)[0] ?? ''
    const headers = { ...options.headers, Host: host }
    const outgoing = request({ ...address, ...options, headers, servername, ca, agent: false })
    outgoing.on('error', () => {}) // also reported by the response, or by `once`
    outgoing.end(body)
    const [reply]: IncomingMessage[] = await once(outgoing, 'response')
    return reply ?? assert.fail()
  }
  const createSandbox = async () => {
    const reply = await call({
      host: `api.${domain}`,
      method: 'POST',
      path: '/sandboxes',
      headers: {
        'X-API-Key': server.firstCredentials?.apiKey ?? '',
        'Content-Type': 'application/json',
      },
      body: Buffer.from(JSON.stringify({ templateID: 'base' })),
    })
    const created = JSON.parse(await text(reply))
    assert.equal(reply.statusCode, 201, JSON.stringify(created))
    return created
  }
  const serve = async (program: RequestListener) => {
    const inside = createServer(program).listen(0, '127.0.0.2')
    await once(inside, 'listening')
    t.after(() => {
      inside.close()
      inside.closeAllConnections()
    })
    const bound = inside.address()
    assert.ok(bound !== null && typeof bound === 'object')
    const { sandboxID: id } = await createSandbox()
    return { id: String(id), inside, host: `${bound.port}-${id}.${domain}`, port: bound.port }
  }
  return { env, server, domain, address, ca, readCa, call, createSandbox, serve }
}

const textOf = async (reply: Promise<IncomingMessage>) => text(await reply)

test('one HTTPS port serves the API, sandboxes and the dashboard, and plain HTTP stays', async (t) => {
  const { server, domain, call, createSandbox, serve } = await setup(t)
  assert.equal((await createSandbox()).domain, domain)
  const { host, id, port } = await serve((req, res) => void res.end(`inside ${req.url}`))
  assert.equal(await textOf(call({ host, path: '/page' })), 'inside /page')
  const headers = { 'E2b-Sandbox-Id': id, 'E2b-Sandbox-Port': String(port) }
  for (const shared of ['api', 'sandbox']) {
    const reply = await call({ host: `${shared}.${domain}`, path: '/by-header', headers })
    assert.equal(reply.headers['content-security-policy'], 'sandbox')
    assert.equal(await text(reply), 'inside /by-header')
  }
  const page = await call({ host: `ui.${domain}` })
  assert.match(String(page.headers['content-type']), /text\/html/)
  assert.equal(server.dashboardUrl, `https://ui.${domain}`)
  assert.equal((await fetch(`${server.apiUrl}/health`)).ok, true)
})

test('host names of other domains reach no sandbox', async (t) => {
  const { server, call, serve } = await setup(t)
  const { host, id, port } = await serve((_, res) => void res.end('inside'))
  for (const other of [`${port}-${id}.evil.test`, `${port}-${id}.x.${hostName}`]) {
    const reply = await fetchAs(server.sandboxUrl, { Host: other })
    assert.deepEqual([reply.status, /under the domain atoll\.test/.test(reply.text)], [400, true])
  }
  const named = await fetchAs(server.sandboxUrl, { Host: `${port}-${id}.localhost` })
  assert.deepEqual([named.status, named.text], [200, 'inside'])
  const byHeader = await fetchAs(server.sandboxUrl, {
    Host: 'sandbox.evil.test',
    'Svc-Sandbox-Id': id,
    'Svc-Sandbox-Port': String(port),
  })
  assert.equal(byHeader.status, 404)
  assert.equal(await textOf(call({ host })), 'inside')
})

async function fetchAs(url: string, headers: Record<string, string>) {
  const outgoing = requestPlain(url, { headers, agent: false }).end()
  const [reply]: IncomingMessage[] = await once(outgoing, 'response')
  return { status: reply?.statusCode, text: reply ? await text(reply) : '' }
}

const showForwarded: RequestListener = ({ headers }, res) =>
  void res.end(['for', 'proto', 'host'].map((name) => headers[`x-forwarded-${name}`]).join(' | '))
const forged = {
  'X-Forwarded-For': '203.0.113.9',
  'X-Forwarded-Proto': 'http',
  'X-Forwarded-Host': 'evil.test',
}

test('a program sees who sent a request, and no forged header', async (t) => {
  const { call, serve } = await setup(t)
  const { host } = await serve(showForwarded)
  assert.equal(await textOf(call({ host })), `127.0.0.1 | https | ${host}`)
  assert.equal(await textOf(call({ host, headers: forged })), `127.0.0.1 | https | ${host}`)
})

test('a program sees the client of a trusted proxy, and of no other', async (t) => {
  const { call, serve } = await setup(t, { ATOLL_TRUSTED_PROXIES: '127.0.0.8/32, 10.0.0.0/8' })
  const { host } = await serve(showForwarded)
  const from = (localAddress: string, given: Record<string, string>) =>
    textOf(call({ host, headers: { ...forged, ...given }, localAddress }))
  const chain = { 'X-Forwarded-For': '6.6.6.6, 203.0.113.9, 10.1.2.3' }
  assert.equal(await from('127.0.0.8', chain), '203.0.113.9 | http | evil.test')
  assert.equal(await from('127.0.0.9', chain), `127.0.0.9 | https | ${host}`)
})

test('large bodies arrive unchanged in both directions', async (t) => {
  const { call, serve } = await setup(t)
  const body = Buffer.alloc(24 * 1024 * 1024, 'abcdefghijklmnopqrstuvw')
  const { host } = await serve((req, res) => void req.pipe(res))
  const reply = await call({ host, method: 'POST', body })
  const hash = createHash('sha256')
  let size = 0
  for await (const piece of reply) {
    hash.update(piece)
    size += piece.length
  }
  assert.deepEqual(
    [size, hash.digest('hex')],
    [body.length, createHash('sha256').update(body).digest('hex')],
  )
})

test('a WebSocket passes bytes both ways', async (t) => {
  const { call, serve, address, ca } = await setup(t)
  const { host, inside } = await serve((_, res) => void res.end())
  inside.on('upgrade', (_, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n')
    socket.pipe(socket)
  })
  await textOf(call({ host }))
  const servername = host.split(':', 1)[0] ?? ''
  const socket = connectTls({ ...address, servername, ca })
  t.after(() => socket.destroy())
  let received = ''
  socket.setEncoding('latin1').on('data', (piece: string) => (received += piece))
  socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n`)
  await waitFor('the upgrade', () => received.includes('\r\n\r\n'))
  socket.write('echo')
  await waitFor('the echo', () => received.endsWith('\r\n\r\necho'))
})

test('a response that breaks off resets the connection, and others are served', async (t) => {
  const { call, serve, domain } = await setup(t)
  const { host } = await serve((req, res) => {
    res.write('begun')
    setImmediate(() => req.socket.destroy())
  })
  await assert.rejects(textOf(call({ host })), { code: 'ECONNRESET' })
  assert.equal((await call({ host: `api.${domain}`, path: '/health' })).statusCode, 200)
})

test('a new CA is served without a restart', { timeout: 300_000 }, async (t) => {
  const { env, call, domain, address, readCa } = await setup(t)
  assert.equal((await call({ host: `api.${domain}`, path: '/health' })).statusCode, 200)
  await setUpLocalCa(env, { replace: true })
  const ca = await readCa()
  await waitFor('the new certificate', async () => {
    const socket = connectTls({ ...address, servername: `api.${hostName}`, ca })
    const trusted = await once(socket, 'secureConnect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    return trusted
  })
})

test('a client that speaks no TLS is disconnected, and others are served', async (t) => {
  const { call, domain, address } = await setup(t)
  const socket = connectTcp(address)
  t.after(() => socket.destroy())
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  socket.resume()
  socket.on('error', () => {})
  await once(socket, 'close')
  assert.equal((await call({ host: `api.${domain}`, path: '/health' })).statusCode, 200)
})

test('silent connections before and after the handshake leave room for others', async (t) => {
  const { call, domain, address, ca } = await setup(t, { ATOLL_MAX_CONNECTIONS: '20' })
  const open: Socket[] = []
  t.after(() => open.forEach((socket) => socket.destroy()))
  let closed = 0
  const track = (socket: Socket) => {
    socket.on('error', () => {})
    socket.on('close', () => (closed += 1))
    open.push(socket)
  }
  for (let at = 0; at < 40; at += 1) {
    const socket =
      at % 2
        ? connectTcp(address)
        : connectTls({ ...address, servername: 'x', ca, rejectUnauthorized: false })
    track(socket)
  }
  await waitFor('the limit', () => closed >= 20)
  assert.equal((await call({ host: `api.${domain}`, path: '/health' })).statusCode, 200)
})
