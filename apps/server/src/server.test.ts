import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import type { Transport } from '@connectrpc/connect'
import { simulateNode } from '@atoll/simulated-node/node'
import { createLogger, silentLogger } from '@atoll/kit/log'
import { freePort } from '@atoll/kit/testing/free-port'
import { waitFor } from '@atoll/kit/wait'
import { loadServerConfig } from './config.ts'
import { startServer } from './server.ts'
import type { RunningServer, ServerParts, StartNode } from './server.ts'

async function setup(t: TestContext) {
  const dataDir = await mkdtemp(join(tmpdir(), 'atoll-server-'))
  t.after(() => rm(dataDir, { recursive: true, force: true }))
  let made = 0
  const node = simulateNode(() => `127.0.0.${(made += 1) + 1}`)
  const startNode: StartNode = async () => ({ transport: node.transport, async close() {} })
  const start = async (env: Record<string, string> = {}, parts: Partial<ServerParts> = {}) => {
    const config = loadServerConfig({
      ATOLL_DATA_DIR: dataDir,
      ATOLL_LISTEN: '127.0.0.1:0',
      ...env,
    })
    const server = await startServer(config, { log: silentLogger, startNode, ...parts })
    let closing: ReturnType<RunningServer['close']> | undefined
    const close = () => (closing ??= server.close())
    t.after(close)
    return { ...server, close }
  }
  return { dataDir, node, start }
}

async function serveInSandbox(t: TestContext, program: Parameters<typeof createServer>[1]) {
  const server = createServer(program).listen(0, '127.0.0.2')
  await waitFor('the program in the sandbox', () => server.listening)
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  return address.port
}

async function createSandbox({ apiUrl, firstCredentials }: RunningServer): Promise<string> {
  const reply = await fetch(`${apiUrl}/sandboxes`, {
    method: 'POST',
    headers: { 'X-API-Key': firstCredentials?.apiKey ?? '', 'Content-Type': 'application/json' },
    body: JSON.stringify({ templateID: 'base' }),
  })
  const body: unknown = await reply.json()
  assert.equal(reply.status, 201, JSON.stringify(body))
  assert.ok(typeof body === 'object' && body !== null && 'sandboxID' in body)
  return String(body.sandboxID)
}

for (const [name, env] of [
  ['one port', {}],
  ['two ports', { ATOLL_EDGE_LISTEN: '127.0.0.1:0' }],
  ['IPv6', { ATOLL_LISTEN: '[::1]:0' }],
] as const) {
  test(`on ${name}, a sandbox made by the API is reached by header and by host`, async (t) => {
    const { start } = await setup(t)
    const server = await start(env)
    assert.equal(server.apiUrl === server.sandboxUrl, name !== 'two ports')
    const id = await createSandbox(server)
    const port = await serveInSandbox(t, (req, res) => void res.end(`inside ${req.url}`))
    const headers = { 'Svc-Sandbox-Id': id, 'Svc-Sandbox-Port': String(port) }
    const byHeader = await fetch(`${server.sandboxUrl}/health`, { headers })
    const byHost = await textOf(server.sandboxUrl, `${port}-${id}.example.dev`)
    const health = await fetch(`${server.apiUrl}/health`)
    assert.deepEqual(
      [await byHeader.text(), byHost, health.ok],
      ['inside /health', 'inside /', true],
    )
  })
}

test('the API listener does not route to sandboxes that have their own listener', async (t) => {
  const { start, node } = await setup(t)
  const server = await start({ ATOLL_EDGE_LISTEN: '127.0.0.1:0' })
  const port = await serveInSandbox(t, (_, res) => void res.end('inside'))
  node.start('abc', '127.0.0.2')
  const headers = { 'Svc-Sandbox-Id': 'abc', 'Svc-Sandbox-Port': String(port) }
  const reply = await fetch(`${server.apiUrl}/nowhere`, { headers })
  assert.equal(reply.status, 404)
})

test('the first credentials work and are in a file for the owner alone', async (t) => {
  const { dataDir, start } = await setup(t)
  const server = await start()
  const { apiUrl, sandboxUrl, firstCredentials } = server
  const path = join(dataDir, 'credentials.json')
  const kept: unknown = JSON.parse(await readFile(path, 'utf8'))
  assert.deepEqual(kept, { ...firstCredentials, url: apiUrl, sandboxUrl })
  assert.deepEqual(
    [(await stat(path)).mode & 0o777, (await stat(dataDir)).mode & 0o777],
    [0o600, 0o700],
  )
  await createSandbox(server)
})

test('a later start makes no credentials and writes down where it is now', async (t) => {
  const { dataDir, start } = await setup(t)
  const first = await start()
  await first.close()
  const second = await start({ ATOLL_LISTEN: '[::1]:0' })
  const kept: unknown = JSON.parse(await readFile(join(dataDir, 'credentials.json'), 'utf8'))
  assert.deepEqual([second.firstCredentials, second.hasCredentials], [undefined, true])
  assert.deepEqual(kept, {
    ...first.firstCredentials,
    url: second.apiUrl,
    sandboxUrl: second.sandboxUrl,
  })
})

test('requests before the server is ready get 503 and the advice to retry', async (t) => {
  const { start, node } = await setup(t)
  const ready = Promise.withResolvers<void>()
  const port = await freePort()
  const starting = start(
    { ATOLL_LISTEN: String(port) },
    {
      async startNode() {
        await ready.promise
        return { transport: node.transport, async close() {} }
      },
    },
  )
  const ask = () => fetch(`http://127.0.0.1:${port}/health`)
  const early = await waitFor('the door', () => ask().catch(() => undefined))
  assert.deepEqual([early.status, early.headers.get('retry-after')], [503, '1'])
  await early.text()
  ready.resolve()
  await starting
  assert.equal((await ask()).ok, true)
})

test('a node that cannot start leaves no door open', async (t) => {
  const { start } = await setup(t)
  const ATOLL_LISTEN = `127.0.0.1:${await freePort()}`
  const startNode = () => Promise.reject(new Error('no gVisor here'))
  await assert.rejects(start({ ATOLL_LISTEN }, { startNode }), /no gVisor here/)
  await start({ ATOLL_LISTEN })
})

test('a close whose steps fail or hang does all the others, and says so in the log', async (t) => {
  const { node, start } = await setup(t)
  const lines: string[] = []
  let isBroken = false
  const { transport } = node
  const broken: Transport = {
    unary: (...call) => (isBroken ? Promise.reject(new Error('EMFILE')) : transport.unary(...call)),
    stream: (...call) => transport.stream(...call),
  }
  const server = await start(
    {},
    {
      log: createLogger('error', { write: (line) => void lines.push(line) }),
      stepLimitMs: 200,
      startNode: async () => ({ transport: broken, close: () => new Promise(() => {}) }),
    },
  )
  isBroken = true
  assert.deepEqual(await server.close(), { leftRunning: undefined })
  await assert.rejects(fetch(server.apiUrl))
  const failures = lines.map((line): Record<string, unknown> => JSON.parse(line))
  const steps = failures.filter(({ event }) => event === 'server.stop.step')
  assert.deepEqual(
    steps.map(({ step }) => step),
    ['count of sandboxes', 'node'],
  )
  assert.match(lines.join(''), /EMFILE[^]*not finished after 200 ms/)
})

test('close is quick whatever is open, and counts the sandboxes that keep running', async (t) => {
  const { node, start } = await setup(t)
  const server = await start()
  const port = await serveInSandbox(t, (_, res) => void res.write('endless'))
  const id = await createSandbox(server)
  await createSandbox(server)
  node.pause(await createSandbox(server))
  const idle = connect(Number(new URL(server.apiUrl).port), '127.0.0.1')
  const slow = connect(Number(new URL(server.apiUrl).port), '127.0.0.1')
  slow.write('POST /sandboxes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n')
  for (const socket of [idle, slow]) socket.resume().on('error', () => {})
  const headers = { 'Svc-Sandbox-Id': id, 'Svc-Sandbox-Port': String(port) }
  const stream = await fetch(server.sandboxUrl, { headers })
  const keptAlive = await fetch(`${server.apiUrl}/health`)
  await keptAlive.text()
  const started = performance.now()
  assert.deepEqual(await server.close(), { leftRunning: 2 })
  assert.ok(performance.now() - started < 30_000, 'it waited for a client')
  await assert.rejects(stream.text())
  await assert.rejects(fetch(server.apiUrl))
  for (const socket of [idle, slow]) await waitFor('the hang-up', () => socket.destroyed)
})

function textOf(url: string, host: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { headers: { Host: host } }, (reply) => {
      let text = ''
      reply.on('data', (chunk) => (text += String(chunk)))
      reply.on('end', () => resolve(text))
    })
    outgoing.on('error', reject)
    outgoing.end()
  })
}
