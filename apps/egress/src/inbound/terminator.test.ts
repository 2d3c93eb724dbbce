import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, RequestListener } from 'node:http'
import { buffer, text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { createKeepAliveAgent, echo, greet, headersIn, readEcho } from '../testing/echo-server.ts'
import { answerTo, name, openTransform, secret } from '../testing/transform-fixture.ts'

for (const protocol of ['tls', 'http'] as const) {
  describe(`requests over ${protocol}`, () => {
    const keptAlive = () => createKeepAliveAgent(protocol)

    test('get the header of the rule in place of the headers that the client sent', async () => {
      await using setting = await openTransform({ protocol, respond: echo })
      const headers = [
        ...['Host', name, 'AUTHORIZATION', 'mine', 'X-A', '1', 'authorization', 'too'],
        ...['x-a', '2', 'Connection', 'authorization, X-B', 'X-B', 'hop'],
      ]
      const { status, body } = await answerTo(setting.ask({ path: '/a?b=c', headers }))
      const seen = readEcho(body)
      assert.deepEqual([status, seen.method, seen.url], [200, 'GET', '/a?b=c'])
      assert.deepEqual(headersIn(seen, 'authorization'), [secret])
      assert.deepEqual(headersIn(seen, 'x-a'), ['1', '2'])
      assert.deepEqual(headersIn(seen, 'x-b'), [])
      assert.deepEqual(headersIn(seen, 'host'), [name])
    })

    test('carry bodies of some megabytes both ways', async () => {
      const respond: RequestListener = (req, res) => void req.pipe(res)
      await using setting = await openTransform({ protocol, respond })
      const sent = randomBytes(8 * 1024 * 1024)
      const length = { Host: name, 'Content-Length': sent.length }
      for (const headers of [{ Host: name, 'Transfer-Encoding': 'chunked' }, length]) {
        const asked = setting.ask({ method: 'POST', headers })
        asked.end(sent)
        const [incoming]: IncomingMessage[] = await once(asked, 'response')
        assert.ok(incoming && sent.equals(await buffer(incoming)))
      }
    })

    test('are read no faster than the server reads', async () => {
      const { promise, resolve } = Promise.withResolvers<IncomingMessage>()
      await using setting = await openTransform({ protocol, respond: resolve })
      const asked = setting.ask({ method: 'POST', headers: { Host: name } })
      let sent = 0
      const piece = Buffer.alloc(1024 * 1024)
      const feed = () => {
        while (sent < 200 && asked.write(piece)) sent += 1
      }
      asked.on('drain', feed)
      feed()
      await promise
      let before = -1
      await waitFor('no more bytes to be accepted', async () => {
        const isStill = before === sent
        before = sent
        await sleep(300)
        return isStill && before === sent
      })
      assert.ok(sent < 100, `${sent} MB were taken`)
      asked.destroy()
    })

    test('share one client connection and one upstream connection', async () => {
      let connections = 0
      await using setting = await openTransform({ protocol, respond: echo })
      setting.upstream.on('connection', () => (connections += 1))
      const agent = keptAlive()
      for (const method of ['GET', 'POST', 'GET']) {
        const { status } = await answerTo(
          setting.ask({ method, agent }),
          method === 'GET' ? '' : 'x',
        )
        assert.equal(status, 200)
      }
      assert.deepEqual([connections, setting.passed.length], [1, 1])
      agent.destroy()
    })

    test('lose their connection when the server closes its connection between two requests', async () => {
      await using setting = await openTransform({ protocol, respond: echo })
      const agent = keptAlive()
      await answerTo(setting.ask({ agent }))
      if ('closeIdleConnections' in setting.upstream) setting.upstream.closeIdleConnections()
      await setting.passed[0]
      assert.equal((await answerTo(setting.ask({ agent }))).status, 200)
      assert.equal(setting.passed.length, 2)
      agent.destroy()
    })

    test('are refused if they name another host than the first request', async () => {
      await using setting = await openTransform({ protocol, respond: greet })
      const socket = await setting.open()
      const second = 'GET / HTTP/1.1\r\nHost: other.example.com\r\n\r\n'
      socket.write(`GET / HTTP/1.1\r\nHost: ${name}:443\r\n\r\n`)
      const [first]: Buffer[] = await once(socket, 'data')
      assert.match(String(first), /^HTTP\/1.1 200 OK\r\n/)
      socket.write(second)
      const answer = await text(socket)
      assert.match(answer, /HTTP\/1.1 421 /)
      assert.ok(!answer.includes(secret))
      socket.destroy()
    })

    for (const [attack, bytes, status] of [
      [
        'two lengths',
        `POST / HTTP/1.1\r\nHost: ${name}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab`,
        400,
      ],
      [
        'a length and chunks',
        `POST / HTTP/1.1\r\nHost: ${name}\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG`,
        400,
      ],
      [
        'an unknown coding',
        `POST / HTTP/1.1\r\nHost: ${name}\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
        501,
      ],
      [
        'chunked twice',
        `POST / HTTP/1.1\r\nHost: ${name}\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
        400,
      ],
      [
        'another host in the target',
        `GET http://other.example.com/ HTTP/1.1\r\nHost: ${name}\r\n\r\n`,
        421,
      ],
      ['a user in the target', `GET http://x@${name}/ HTTP/1.1\r\nHost: ${name}\r\n\r\n`, 421],
      ['two hosts', `GET / HTTP/1.1\r\nHost: ${name}\r\nHost: other.example.com\r\n\r\n`, 400],
      ['CONNECT', `CONNECT ${name}:443 HTTP/1.1\r\nHost: ${name}\r\n\r\n`, 400],
      ['TRACE', `TRACE / HTTP/1.1\r\nHost: ${name}\r\n\r\n`, 405],
      [
        'an upgrade for another host',
        `GET / HTTP/1.1\r\nHost: other.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
        421,
      ],
    ] as const) {
      test(`are refused with ${attack}`, async () => {
        let requests = 0
        const respond: RequestListener = (req, res) => {
          requests += 1
          greet(req, res)
        }
        await using setting = await openTransform({ protocol, respond })
        const socket = await setting.open()
        // The first request must be valid, or plain HTTP would have no server name.
        socket.write(`GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n`)
        await once(socket, 'data')
        socket.write(bytes)
        const answer = await text(socket)
        assert.match(answer, new RegExp(`HTTP/1.1 ${status} `))
        assert.ok(!answer.includes(secret))
        assert.equal(requests, 1)
        socket.destroy()
      })
    }

    test('may have a target in absolute form', async () => {
      await using setting = await openTransform({ protocol, respond: echo })
      const { body } = await answerTo(setting.ask({ path: `http://${name}/x?y` }))
      assert.equal(readEcho(body).url, '/x?y')
    })

    test('upgrade to another protocol', async () => {
      await using setting = await openTransform({ protocol, respond: echo })
      setting.upstream.on('upgrade', (req: IncomingMessage, socket, head: Buffer) => {
        socket.write(
          `HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: ${req.headers.upgrade}\r\n` +
            `X-Seen: ${req.headers.authorization === secret}\r\n\r\nwelcome `,
        )
        socket.write(head)
        socket.pipe(socket)
      })
      const socket = await setting.open()
      socket.write(
        `GET / HTTP/1.1\r\nHost: ${name}\r\nConnection: Upgrade, Authorization\r\n` +
          'Upgrade: test\r\n\r\nfirst ',
      )
      let said = ''
      socket.on('data', (piece) => (said += String(piece)))
      await waitFor('both to speak', () => said.endsWith('welcome first '))
      assert.match(said, /^HTTP\/1\.1 101 Yes\r\n/)
      assert.match(said, /x-seen: true\r\n/i)
      assert.match(said, /upgrade: test\r\n/i)
      socket.end('last')
      await once(socket, 'close')
      assert.ok(said.endsWith('welcome first last'))
      await setting.passed[0]
    })

    test('get the plain response of a server that does not upgrade', async () => {
      await using setting = await openTransform({
        protocol,
        respond: (_req, res) => res.writeHead(426).end('no'),
      })
      const headers = { Host: name, Connection: 'Upgrade', Upgrade: 'websocket' }
      const { status, body } = await answerTo(setting.ask({ headers }))
      assert.deepEqual([status, body], [426, 'no'])
    })

    test('may have responses without bodies', async () => {
      await using setting = await openTransform({
        protocol,
        respond: (req, res) => {
          const status = Number(req.url?.slice(1))
          res.writeHead(status, { ...(status !== 204 && { 'Content-Length': '5' }), ETag: '"e"' })
          res.end(req.method === 'HEAD' || status !== 200 ? undefined : 'hello')
        },
      })
      const agent = keptAlive()
      for (const [method, path, length] of [
        ['HEAD', '/200', '5'],
        ['GET', '/204', undefined],
        ['GET', '/304', '5'],
      ] as const) {
        const { status, headers, body } = await answerTo(setting.ask({ method, path, agent }))
        assert.deepEqual(
          [status, headers['content-length'], headers.etag, body],
          [Number(path.slice(1)), length, '"e"', ''],
        )
      }
      assert.equal(setting.passed.length, 1)
      agent.destroy()
    })

    test('pass on 100 Continue from the server', async () => {
      await using setting = await openTransform({ protocol, respond: echo })
      setting.upstream.on('checkContinue', (req: IncomingMessage, res) => {
        if (req.url === '/no') res.writeHead(417).end('no')
        else {
          res.writeContinue()
          echo(req, res)
        }
      })
      const headers = { Host: name, Expect: '100-continue', 'Content-Length': 4 }
      const asked = setting.ask({ method: 'PUT', headers })
      asked.flushHeaders()
      await once(asked, 'continue')
      assert.equal(readEcho((await answerTo(asked, 'body')).body).body, 'body')

      const refused = setting.ask({ method: 'PUT', path: '/no', headers })
      refused.flushHeaders()
      const [answer]: IncomingMessage[] = await once(refused, 'response')
      assert.equal(answer?.statusCode, 417)
      refused.destroy()
    })

    for (const isClosed of [false, true]) {
      const what = isClosed ? 'then closes' : 'reads on'
      test(`may get a response before their bodies are complete from a server that ${what}`, async () => {
        let arrived: IncomingMessage | undefined
        await using setting = await openTransform({
          protocol,
          respond: (req, res) => {
            req.resume()
            req.on('error', () => {})
            res.writeHead(413).end('too much')
            arrived = req
          },
        })
        const agent = keptAlive()
        const asked = setting.ask({ method: 'POST', headers: { Host: name }, agent })
        asked.write(Buffer.alloc(4 * 1024 * 1024))
        const [answer]: IncomingMessage[] = await once(asked, 'response')
        assert.ok(answer)
        assert.deepEqual([answer.statusCode, await text(answer)], [413, 'too much'])
        if (isClosed) {
          arrived?.socket.destroy()
          await sleep(200)
        }
        for (let left = 4; left > 0; left -= 1) asked.write(Buffer.alloc(1024 * 1024))
        asked.end('the rest')
        if (isClosed) await setting.passed[0]
        else assert.equal((await answerTo(setting.ask({ agent }))).status, 413)
        assert.equal(setting.passed.length, 1)
        agent.destroy()
      })
    }
  })
}

test('connections beyond the rate limit of a sandbox are reset', async () => {
  let now = 0
  await using setting = await openTransform({ protocol: 'http', respond: greet, now: () => now })
  const ask = () => answerTo(setting.ask({ agent: false })).then(({ status }) => status)
  for (let left = 100; left > 0; left -= 1) assert.equal(await ask(), 200)
  await assert.rejects(ask(), { code: 'ECONNRESET' })
  const other = setting.ask({ agent: false, headers: { Host: 'other.example.com' } })
  assert.equal((await answerTo(other)).status, 200)
  now += 20
  assert.equal(await ask(), 200)
  await assert.rejects(ask(), { code: 'ECONNRESET' })
})

test('a server with an untrusted certificate gets no secret', async () => {
  let requests = 0
  await using setting = await openTransform({
    protocol: 'tls',
    isTrusted: false,
    respond: () => (requests += 1),
  })
  const { status, body } = await answerTo(setting.ask())
  assert.deepEqual([status, requests], [502, 0])
  assert.match(body, /^The certificate of api\.example\.com is not valid \([A-Z_]+\)\n$/)
})

test('a client that speaks only HTTP/2 is rejected in the TLS handshake', async () => {
  await using setting = await openTransform({ protocol: 'tls', respond: echo })
  const secondOnly = { ALPNProtocols: ['h2'], path: '/' }
  const asked = setting.ask(secondOnly)
  asked.end()
  await assert.rejects(once(asked, 'response'), /alert|ECONNRESET/)
})

test('a client that knows only HTTP/1.0 is served', async () => {
  await using setting = await openTransform({ protocol: 'tls', respond: greet })
  const oldOnly = { ALPNProtocols: ['http/1.0'], path: '/' }
  assert.equal((await answerTo(setting.ask(oldOnly))).body, 'hello')
})

test('connections with another name, or none, are piped unchanged', async () => {
  await using setting = await openTransform({ protocol: 'http', respond: echo })
  const { body } = await answerTo(setting.ask({ headers: { Host: 'other.example.com' } }))
  assert.deepEqual(headersIn(readEcho(body), 'authorization'), [])
  assert.equal(setting.dialled[0]?.transform, undefined)
})

test('plain HTTP on another port is piped unchanged', async () => {
  await using setting = await openTransform({ protocol: 'http', port: 8080, respond: echo })
  const { body } = await answerTo(setting.ask())
  assert.deepEqual(headersIn(readEcho(body), 'authorization'), [])
  assert.equal(setting.dialled[0]?.transform, undefined)
})

test('a client that waits for the server to speak first is connected after a second', async () => {
  await using setting = await openTransform({ protocol: 'http', port: 25 })
  setting.upstream.removeAllListeners('connection')
  setting.upstream.on('connection', (socket) => {
    socket.write('220 hello ')
    socket.pipe(socket)
  })
  const socket = await setting.open()
  socket.write('HE') // may be the start of a request
  let said = ''
  socket.on('data', (piece) => (said += String(piece)))
  await waitFor('the server to speak', () => said.length > 0)
  socket.end('LO')
  await once(socket, 'end')
  assert.equal(said, '220 hello HELO')
  socket.destroy()
})
