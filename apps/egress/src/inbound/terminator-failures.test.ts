import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, RequestListener } from 'node:http'
import { buffer, text } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { waitFor } from '@atoll/kit/wait'
import { echo } from '../testing/echo-server.ts'
import { answerTo, name, openTransform, secret } from '../testing/transform-fixture.ts'

for (const protocol of ['tls', 'http'] as const) {
  describe(`interrupted and pipelined requests over ${protocol}`, () => {
    for (const framing of [{ 'Content-Length': '100' }, { 'Transfer-Encoding': 'chunked' }]) {
      test(`are reset when the server dies during a response with ${Object.keys(framing).join()}`, async () => {
        await using setting = await openTransform({
          protocol,
          respond: (_req, res) => {
            res.writeHead(200, framing)
            res.write('begin', () => res.destroy())
          },
        })
        await assert.rejects(answerTo(setting.ask()), { code: 'ECONNRESET' })
        await setting.passed[0]
      })
    }

    test('get 502 when the server cannot be reached', async () => {
      await using setting = await openTransform({ protocol, respond: echo })
      setting.upstream.close()
      await once(setting.upstream, 'close')
      const { status, body, headers } = await answerTo(setting.ask({ method: 'POST' }), 'x')
      assert.deepEqual(
        [status, body, headers.connection],
        [502, `${name} could not be reached\n`, 'close'],
      )
    })

    test('get 502 when the server hangs up or does not speak HTTP', async () => {
      for (const said of ['', 'SSH-2.0-x\r\n', 'HTTP/1.1 200 OK\r\nA\r\n\r\n']) {
        await using setting = await openTransform({ protocol })
        setting.upstream.on('request', (req: IncomingMessage) => void req.socket.end(said))
        const { status, body } = await answerTo(setting.ask())
        assert.deepEqual([status, body], [502, `${name} could not be reached\n`])
      }
    })

    test('are reset when their rule changes', async () => {
      const respond: RequestListener = (_req, res) => void res.write('begin')
      await using setting = await openTransform({ protocol, respond })
      const asked = setting.ask()
      asked.end()
      const [incoming]: IncomingMessage[] = await once(asked, 'response')
      assert.ok(incoming)
      setting.change([{ pattern: name, headers: { Authorization: secret } }])
      setting.change([
        { pattern: name, headers: { Authorization: secret } },
        { pattern: 'other.example.com', headers: {} },
      ])
      await sleep(50)
      assert.equal(incoming.destroyed, false)
      setting.change([{ pattern: name, headers: { Authorization: 'another' } }])
      await assert.rejects(buffer(incoming), { code: 'ECONNRESET' })
      await setting.passed[0]
    })

    test('with an invalid rule header get 502 without details', async () => {
      await using setting = await openTransform({
        protocol,
        respond: echo,
        domains: [{ pattern: name, headers: { Authorization: `${secret}\r\nX: y` } }],
      })
      const { status, body } = await answerTo(setting.ask())
      assert.deepEqual([status, body], [502, `${name} could not be reached\n`])
    })

    test('are dialed by name even if their address is allowed, and only at allowed addresses', async () => {
      const rules = { denyOut: ['1.1.1.1'] }
      await using setting = await openTransform({ protocol, respond: echo, rules })
      await answerTo(setting.ask())
      const [way] = setting.dialled
      assert.deepEqual([way?.verdict.kind, way?.transform?.name], ['byAddress', name])
      assert.equal(way?.transform?.within?.denied.length, 1)
    })

    test('are answered after the client has closed its side', async () => {
      const respond: RequestListener = (req, res) => {
        res.write('begin ')
        setTimeout(() => res.end(`end of ${req.url}`), 100)
      }
      await using setting = await openTransform({ protocol, respond })
      const ask = (path: string) => `GET ${path} HTTP/1.1\r\nHost: ${name}\r\n\r\n`
      for (const [sent, last] of [
        [ask('/1'), '/1'],
        [ask('/1') + ask('/2'), '/2'],
      ] as const) {
        const socket = await setting.open()
        socket.end(sent)
        const answer = await text(socket)
        assert.match(answer, new RegExp(`^HTTP/1.1 200 [^]*begin [^]*end of ${last}\\s+0\\s+$`))
      }
      await Promise.all(setting.passed)
    })

    test('are given up some time after the client has disconnected', async () => {
      const asked = Promise.withResolvers<IncomingMessage>()
      const setup = { protocol, respond: asked.resolve, halfCloseTimeoutMs: 200 }
      await using setting = await openTransform(setup)
      const socket = await setting.open()
      socket.on('error', () => {})
      socket.write(`GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n`)
      // Not before the request has arrived: the limit runs from the end of the client on.
      const { socket: outside } = await asked.promise
      socket.end()
      await setting.passed[0]
      await waitFor('the upstream connection to close', () => outside.destroyed)
      socket.destroy()
    })

    test('that break off are not answered', async () => {
      const respond: RequestListener = (req, res) => {
        req.on('error', () => {})
        req.resume().once('end', () => res.end('hello'))
      }
      await using setting = await openTransform({ protocol, respond })
      const socket = await setting.open()
      socket.end(`POST / HTTP/1.1\r\nHost: ${name}\r\nContent-Length: 10\r\n\r\nabc`)
      assert.doesNotMatch(await text(socket), /200/)
      await Promise.all(setting.passed)
    })

    test('that are pipelined are forwarded one by one over one connection', async () => {
      const order: string[] = []
      let connections = 0
      await using setting = await openTransform({
        protocol,
        respond: (req, res) => {
          order.push(`${req.url}`)
          const answer = () => {
            order.push(`answer to ${req.url}`)
            res.end(`this is ${req.url}`)
          }
          req.resume().once('end', () => setTimeout(answer, req.url === '/1' ? 100 : 10))
        },
      })
      setting.upstream.on('connection', () => (connections += 1))
      const socket = await setting.open()
      const begin = `Host: ${name}\r\n`
      const first = `GET /1 HTTP/1.1\r\n${begin}\r\nPOST /2 HTTP/1.1\r\n${begin}Content-Length: 4\r\n\r\nbody`
      socket.write(`${first}GET /3 HTTP/1.1\r\n${begin}\r\n`)
      let said = ''
      socket.on('data', (piece) => (said += String(piece)))
      await waitFor('three answers', () => said.includes('this is /3'))
      await sleep(50)
      socket.write(`GET /4 HTTP/1.1\r\n${begin}Connection: close\r\n\r\n`)
      await once(socket, 'end')
      socket.destroy()
      const all = ['/1', '/2', '/3', '/4']
      assert.deepEqual(
        [...said.matchAll(/this is (\S\d)/g)].map(([, path]) => path),
        all,
      )
      assert.deepEqual(
        order,
        all.flatMap((path) => [path, `answer to ${path}`]),
      )
      assert.deepEqual([setting.dialled.length, connections], [1, 1])
      await setting.passed[0]
    })

    test('that are pipelined after a refused one are not forwarded', async () => {
      const seen: string[] = []
      const respond: RequestListener = (req, res) => {
        seen.push(`${req.url}`)
        setTimeout(() => res.end('hello'), 20)
      }
      await using setting = await openTransform({ protocol, respond })
      const socket = await setting.open()
      const ask = (path: string, host: string) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`
      socket.write(ask('/1', name) + ask('/2', 'other.example.com') + ask('/3', name))
      const answer = await text(socket)
      assert.deepEqual(answer.match(/HTTP\/1.1 \d+/g), ['HTTP/1.1 200', 'HTTP/1.1 421'])
      assert.deepEqual(seen, ['/1'])
      socket.destroy()
    })

    test('are reset when too many are pipelined', async () => {
      const respond: RequestListener = () => {}
      await using setting = await openTransform({ protocol, respond })
      const socket = await setting.open()
      socket.write(`GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n`.repeat(1000))
      await assert.rejects(once(socket, 'close'), { code: 'ECONNRESET' })
      await setting.passed[0]
    })
  })
}
