import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import type { WakeRequest, WakeResult } from '../domain/wake.ts'
import { rawClient, startTestEdge } from '../sim/test-edge.ts'

const address = '127.0.0.2'

/** Pauses a sandbox `abc`, with a wake function that the test controls. */
async function setup(t: TestContext, wakeLimitMs = 20_000) {
  const asked: (WakeRequest & { readonly signal: AbortSignal })[] = []
  const answers: ((result: WakeResult | Error) => void)[] = []
  const testEdge = await startTestEdge(
    {},
    {
      wakeLimitMs,
      wake: (request, signal) =>
        new Promise((resolve, reject) => {
          asked.push({ ...request, signal })
          answers.push((result) => (result instanceof Error ? reject(result) : resolve(result)))
        }),
    },
  )
  t.after(() => testEdge.close())
  const headers = await testEdge.serve('abc', async (req, res) => {
    res.end(`${req.method} ${await lengthOf(req)}`)
  })
  testEdge.node.pause('abc')
  return {
    ...testEdge,
    headers,
    asked,
    isAsked: (count = 1) => waitFor('the wake', () => asked.length === count),
    answer: (result: WakeResult | Error, at = 0) => answers[at]?.(result),
    resume() {
      testEdge.node.start('abc', address)
      answers.at(-1)?.({ kind: 'running' })
    },
  }
}

test('a request to a paused sandbox waits until the sandbox runs', async (t) => {
  const { url, headers, asked, isAsked, resume } = await setup(t)
  const tokens = { 'X-Access-Token': 'access', 'E2B-Traffic-Access-Token': 'traffic' }
  const reply = fetch(url, { method: 'POST', headers: { ...headers, ...tokens }, body: 'hello' })
  await isAsked()
  resume()
  assert.equal(await (await reply).text(), 'POST 5')
  const [{ signal: _, ...request } = {}] = asked
  assert.deepEqual(request, {
    sandboxId: 'abc',
    port: Number(headers['Svc-Sandbox-Port']),
    accessToken: 'access',
    trafficToken: 'traffic',
  })
})

test('a request during a pause waits, and is served after the resume', async (t) => {
  const { url, headers, node, isAsked, resume } = await setup(t)
  node.start('abc', address)
  assert.equal((await fetch(url, { headers })).status, 200)
  node.beginPause('abc')
  const reply = fetch(url, { method: 'POST', headers, body: 'hello' })
  await isAsked()
  node.pause('abc')
  resume()
  assert.equal(await (await reply).text(), 'POST 5')
})

test('a request during a pause is served if the pause fails', async (t) => {
  const { url, headers, node, isAsked, resume } = await setup(t)
  node.start('abc', address)
  assert.equal((await fetch(url, { headers })).status, 200)
  node.beginPause('abc')
  const reply = fetch(url, { headers })
  await isAsked()
  resume()
  assert.equal(await (await reply).text(), 'GET 0')
})

test('a request during a pause is 502 if the sandbox may not be woken', async (t) => {
  const { url, headers, node, isAsked, answer } = await setup(t)
  node.start('abc', address)
  assert.equal((await fetch(url, { headers })).status, 200)
  node.beginPause('abc')
  const reply = fetch(url, { headers })
  await isAsked()
  answer({ kind: 'not_found' })
  assert.equal((await reply).status, 502)
})

test('a running response continues when a pause begins, and is reset when the sandbox is paused', async (t) => {
  const { edgePort, serve, node, isAsked } = await setup(t)
  const headers = await serve('abc', (_, res) => res.write('first'))
  const client = rawClient(edgePort, requestText('GET /', headers))
  await waitFor('the answer to begin', () => client.received().includes('first'))
  node.beginPause('abc')
  const other = rawClient(edgePort, requestText('GET /', headers))
  t.after(() => other.socket.destroy())
  await isAsked()
  assert.deepEqual([client.state(), other.received()], ['open', ''])
  node.pause('abc')
  await waitFor('the reset', () => client.state() === 'reset')
})

test('concurrent requests share one wake, and a client that disconnects does not cancel it', async (t) => {
  const { url, edgePort, headers, asked, isAsked, resume } = await setup(t)
  const replies = Array.from({ length: 50 }, () => fetch(url, { headers }))
  const leaver = rawClient(edgePort, requestText('GET /', headers))
  await isAsked()
  leaver.socket.destroy()
  const other = await fetch(url, { headers: { ...headers, 'Svc-Sandbox-Port': 'x' } })
  assert.deepEqual([other.status, asked[0]?.signal.aborted], [400, false])
  resume()
  const texts = await Promise.all(replies.map(async (reply) => (await reply).text()))
  assert.deepEqual([new Set(texts), asked.length], [new Set(['GET 0']), 1])
})

test('callers with different tokens do not share a wake', async (t) => {
  const { url, headers, isAsked, answer, resume } = await setup(t)
  const stranger = fetch(url, { headers })
  await isAsked()
  const owner = fetch(url, { headers: { ...headers, 'X-Access-Token': 'right' } })
  await isAsked(2)
  answer({ kind: 'forbidden' })
  assert.equal((await stranger).status, 403)
  resume()
  assert.equal((await owner).status, 200)
})

test('an upgrade waits for the sandbox', async (t) => {
  const { edgePort, serve, node, isAsked, resume } = await setup(t)
  const inside = createServer()
  inside.on('upgrade', (_, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n')
    socket.pipe(socket)
  })
  const headers = await serve('abc', inside)
  node.pause('abc')
  const client = rawClient(edgePort, `${upgradeText(headers)}early `)
  await isAsked()
  client.socket.write('late')
  resume()
  await waitFor('the echo', () => client.received().endsWith('early late'))
})

for (const kind of ['request', 'upgrade'] as const) {
  test(`a client that disconnects during its ${kind} cancels the wake`, async (t) => {
    const { edgePort, headers, asked, isAsked } = await setup(t)
    for (const leave of ['end', 'destroy', 'resetAndDestroy'] as const) {
      const text = kind === 'upgrade' ? upgradeText(headers) : requestText('GET /', headers)
      const client = rawClient(edgePort, text)
      const before = asked.length
      await isAsked(before + 1)
      client.socket[leave]()
      await waitFor(`the wake to end after ${leave}`, () => asked.at(-1)?.signal.aborted === true)
    }
  })
}

test('the body of a waiting request is not read before the sandbox runs', async (t) => {
  const { edgePort, headers, isAsked, resume } = await setup(t)
  const megabytes = 64
  const body = Buffer.alloc(megabytes * 1024 * 1024)
  const head = requestText('POST /', headers, [`Content-Length: ${body.length}`])
  const client = rawClient(edgePort, head)
  client.socket.write(body)
  await isAsked()
  let before = -1
  await waitFor('the sending to stop', () => {
    const isStill = client.socket.bytesWritten - client.socket.writableLength === before
    before = client.socket.bytesWritten - client.socket.writableLength
    return isStill
  })
  assert.ok(client.socket.writableLength > 0)
  assert.ok(process.memoryUsage().arrayBuffers < 1.5 * body.length, 'it is not kept a second time')
  resume()
  await waitFor('the answer', () => client.received().includes(`POST ${body.length}`), {
    timeoutMs: 30_000,
  })
})

const outcomes: [WakeResult | Error, number, string][] = [
  [{ kind: 'not_found' }, 502, 'The sandbox was not found'],
  [new Error('broken'), 502, 'The sandbox was not found'],
  [{ kind: 'forbidden' }, 403, 'The sandbox is paused, and this request may not wake it'],
  [{ kind: 'forbidden', message: 'Blocked' }, 403, 'Blocked'],
  [{ kind: 'conflict' }, 409, 'The sandbox is being paused or resumed; try again in a moment'],
  [{ kind: 'limit', message: 'At most 20' }, 429, 'At most 20'],
]

for (const [result, status, message] of outcomes) {
  const name = result instanceof Error ? 'a failed wake' : `${result.kind} ${result.message ?? ''}`
  test(`${name.trim()} is ${status}, in JSON and as a page`, async (t) => {
    const { url, edgePort, headers, isAsked, answer } = await setup(t)
    const reply = fetch(url, { headers })
    await isAsked()
    answer(result)
    assert.deepEqual(
      [(await reply).status, await (await reply).json()],
      [status, { sandboxId: 'abc', message, code: status }],
    )
    const browser = rawClient(edgePort, requestText('GET /', headers, ['User-Agent: Mozilla/5.0']))
    await isAsked(2)
    answer(result, 1)
    const page = await waitFor('the page', () => /<html[^]*<\/html>/.exec(browser.received())?.[0])
    assert.match(page, /abc/)
    const upgrade = rawClient(edgePort, upgradeText(headers))
    await isAsked(3)
    answer(result, 2)
    await waitFor('the refusal', () => upgrade.received().startsWith(`HTTP/1.1 ${status} `))
  })
}

test('a request that waits too long is 409', async (t) => {
  const { url, headers, asked } = await setup(t, 50)
  const reply = await fetch(url, { headers })
  assert.deepEqual([reply.status, asked[0]?.signal.aborted], [409, true])
})

test('a sandbox that is paused again before the connect is woken again, with a limit', async (t) => {
  const { url, headers, isAsked, answer } = await setup(t)
  const reply = fetch(url, { headers })
  for (const round of [1, 2, 3]) {
    await isAsked(round)
    answer({ kind: 'running' }, round - 1)
  }
  assert.equal((await reply).status, 409)
})

test('a sandbox that is paused during the connect is woken again', async (t) => {
  const { url, node, isAsked, answer } = await setup(t)
  node.start('late', address)
  const headers = { 'Svc-Sandbox-Id': 'late', 'Svc-Sandbox-Port': '1' }
  const reply = fetch(url, { headers })
  await fetch(url, { headers: { ...headers, 'Svc-Sandbox-Port': 'x' } })
  node.pause('late')
  await isAsked()
  answer({ kind: 'limit' })
  assert.equal((await reply).status, 429)
})

test('an edge that closes disconnects its waiting clients', async (t) => {
  const { edge, edgePort, headers, isAsked } = await setup(t)
  const client = rawClient(edgePort, requestText('GET /', headers))
  await isAsked()
  await edge.close()
  await waitFor('the end', () => client.state() !== 'open')
  assert.equal(client.received(), '')
})

test('internal paths do not wake a sandbox', async (t) => {
  const { url, asked } = await setup(t)
  const headers = { 'Svc-Sandbox-Id': 'abc', 'Svc-Sandbox-Port': '49983' }
  const reply = await fetch(`${url}/init`, { method: 'POST', headers })
  assert.deepEqual([reply.status, asked.length], [404, 0])
})

function requestText(
  line: string,
  headers: Record<string, string>,
  more: readonly string[] = [],
): string {
  const given = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return [`${line} HTTP/1.1`, 'Host: localhost', ...given, ...more, '', ''].join('\r\n')
}

function upgradeText(headers: Record<string, string>): string {
  return requestText('GET /', headers, ['Connection: Upgrade', 'Upgrade: x'])
}

async function lengthOf(message: IncomingMessage): Promise<number> {
  let length = 0
  for await (const chunk of message) length += Buffer.isBuffer(chunk) ? chunk.length : 0
  return length
}
