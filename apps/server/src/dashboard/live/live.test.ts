/** The live connection of a whole server on a simulated node. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { WebSocket } from 'ws'
import { simulateNode } from '@atoll/simulated-node/node'
import { silentLogger } from '@atoll/kit/log'
import { waitFor } from '@atoll/kit/wait'
import { loadServerConfig } from '../../config.ts'
import { startServer } from '../../server.ts'
import type { RunningServer } from '../../server.ts'

suite('the live connection', () => {
  let dataDir: string
  let server: RunningServer
  let port: string
  let host: string
  let origin: string
  let apiKey: string

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'atoll-live-'))
    const config = loadServerConfig({ ATOLL_DATA_DIR: dataDir, ATOLL_LISTEN: '127.0.0.1:0' })
    const { transport } = simulateNode()
    server = await startServer(config, {
      log: silentLogger,
      startNode: async () => ({ transport, async close() {} }),
    })
    port = new URL(server.apiUrl).port
    host = `ui.localhost:${port}`
    origin = `http://${host}`
    apiKey = server.firstCredentials?.apiKey ?? ''
  })
  after(async () => {
    await server.close()
    await rm(dataDir, { recursive: true, force: true })
  })

  const ask = async (method: string, path: string, body?: unknown, cookie = '') => {
    const headers = { host, origin, cookie, 'content-type': 'application/json' }
    const sent = request({ host: '127.0.0.1', port, method, path, headers })
    sent.end(body === undefined ? undefined : JSON.stringify(body))
    const [res] = await once(sent, 'response')
    const text = Buffer.concat(await Array.fromAsync(res)).toString('utf8')
    const answer: { status: number; headers: IncomingHttpHeaders; text: string } = {
      status: res.statusCode,
      headers: res.headers,
      text,
    }
    return answer
  }
  const signIn = async (key = apiKey) => {
    const { headers } = await ask('POST', '/bff/session', { apiKey: key })
    return String(headers['set-cookie']).split(';', 1)[0] ?? ''
  }
  const createSandbox = (cookie: string) =>
    ask('POST', '/bff/api/v2/sandboxes', { templateID: 'base' }, cookie)
  const connect = (headers: Record<string, string>) =>
    new WebSocket(`ws://127.0.0.1:${port}/bff/live`, { headers: { host, ...headers } })

  /** Opens a connection and collects its messages. */
  const open = async (cookie: string) => {
    const socket = connect({ cookie, origin })
    const messages: Record<string, unknown>[] = []
    socket.binaryType = 'nodebuffer'
    socket.on('message', (data: Buffer) => messages.push(JSON.parse(data.toString('utf8'))))
    const closed = once(socket, 'close').then(([code]) => Number(code))
    await once(socket, 'open')
    return {
      messages,
      closed,
      send: (message: unknown) => socket.send(JSON.stringify(message)),
      sendBytes: (bytes: Uint8Array) => socket.send(bytes),
      end: () => socket.terminate(),
    }
  }
  const watch = (path: string, tag = '') => ({ watch: { paths: [{ path, tag }], everyMs: 1_000 } })
  const list = '/bff/api/v2/sandboxes?limit=100'

  test('needs the session and the own origin', async () => {
    const cookie = await signIn()
    const refusal = async (headers: Record<string, string>) => {
      const socket = connect(headers)
      const [error] = await once(socket, 'error')
      return String(error)
    }
    assert.match(await refusal({ origin }), /401/)
    assert.match(await refusal({ origin, cookie: 'atoll-session=invented' }), /401/)
    assert.match(await refusal({ cookie }), /403/)
    assert.match(await refusal({ cookie, origin: `http://8000-iabc.localhost:${port}` }), /403/)
    assert.match(await refusal({ cookie, origin, 'sec-fetch-site': 'same-site' }), /403/)
  })

  test('sends an answer when it changes, and not one that the page has', async () => {
    const cookie = await signIn()
    const known = await ask('GET', list, undefined, cookie)
    const live = await open(cookie)
    live.send({ c: 1, open: watch(list, String(known.headers['x-atoll-tag'])) })
    const made = await createSandbox(cookie)
    const { sandboxID } = JSON.parse(made.text)
    const message = await waitFor('the change', () => live.messages[0])
    assert.equal(message['c'], 1)
    const text = JSON.stringify(message)
    assert.ok(text.includes(sandboxID))
    assert.doesNotMatch(text, /AccessToken/)
    live.end()
  })

  test('a page that does not acknowledge gets no more messages', async () => {
    const cookie = await signIn()
    const live = await open(cookie)
    live.send({ c: 1, open: watch(list) })
    live.send({ c: 2, open: watch(list) })
    await waitFor('the first answers', () => live.messages.length === 2)
    await createSandbox(cookie)
    live.send({ c: 2, control: { ack: 1 } })
    await waitFor('the change of the acknowledged channel', () => live.messages.length === 3)
    assert.equal(live.messages[2]?.['c'], 2)
    live.send({ c: 2, control: { ack: 1 } })
    await createSandbox(cookie)
    await waitFor('the next change', () => live.messages.length === 4)
    assert.equal(live.messages[3]?.['c'], 2)
    live.end()
  })

  test('watches neither operators’ operations nor other paths', async () => {
    const live = await open(await signIn())
    const paths = ['/bff/api/admin/teams', '/bff/session', '/bff/sandboxes/iabc/file?path=/x']
    paths.forEach((path, index) => live.send({ c: index + 1, open: watch(path) }))
    await waitFor('the answers', () => live.messages.length === paths.length)
    assert.equal(JSON.stringify(live.messages).match(/"status":404/g)?.length, paths.length)
    live.end()
  })

  test('a terminal of a sandbox that does not exist ends with the reason', async () => {
    const live = await open(await signIn())
    const terminal = { sandboxId: 'iaaaaaaaaaaaaaaaaaaaa', size: { cols: 80, rows: 24 } }
    live.send({ c: 7, open: { terminal } })
    const { c, closed, error } = await waitFor('the end', () => live.messages[0])
    assert.deepEqual([c, closed], [7, true])
    assert.match(JSON.stringify(error), /"status":404/)
    live.end()
  })

  test('has a limit of channels, and a freed channel makes room', async () => {
    const live = await open(await signIn())
    for (let c = 1; c <= 129; c += 1) live.send({ c, open: watch(list) })
    const refused = await waitFor('the refusal', () => live.messages.find(({ c }) => c === 129))
    assert.match(JSON.stringify(refused), /128 open channels/)
    live.send({ c: 1, close: true })
    live.send({ c: 130, open: watch(list) })
    const accepted = await waitFor('the answer', () => live.messages.find(({ c }) => c === 130))
    assert.ok(accepted['answers'])
    live.end()
  })

  test('a message that no page sends closes the connection', async () => {
    const cookie = await signIn()
    for (const message of [
      {},
      [],
      { c: 0, close: true },
      { c: 1, open: { watch: { paths: [], everyMs: 1_000 } } },
      { c: 1, open: { watch: { paths: [{ path: list, tag: '' }], everyMs: 1 } } },
      { c: 1, open: { terminal: { sandboxId: '../x', size: { cols: 80, rows: 24 } } } },
    ]) {
      const live = await open(cookie)
      live.send(message)
      assert.equal(await live.closed, 1008, JSON.stringify(message))
    }
    const short = await open(cookie)
    short.sendBytes(Uint8Array.of(0, 0))
    assert.equal(await short.closed, 1008)
    const large = await open(cookie)
    large.sendBytes(new Uint8Array(200_000))
    assert.equal(await large.closed, 1009)
  })

  test('ends with the session', async () => {
    const cookie = await signIn()
    const live = await open(cookie)
    assert.equal((await ask('DELETE', '/bff/session', undefined, cookie)).status, 204)
    assert.equal(await live.closed, 4401)
  })

  test('ends with the key of the session', async () => {
    const first = await signIn()
    const { text } = await ask('POST', '/bff/api/api-keys', { name: 'second' }, first)
    const { id, key } = JSON.parse(text)
    const live = await open(await signIn(key))
    live.send({ c: 1, open: watch(list) })
    await waitFor('the first answer', () => live.messages.length === 1)
    live.send({ c: 1, control: { ack: 1 } })
    await ask('DELETE', `/bff/api/api-keys/${id}`, undefined, first)
    assert.equal(await live.closed, 4401)
  })
})
