import assert from 'node:assert/strict'
import { test } from 'node:test'
import { requestHeaders, responseHeaders, upgradeHeaders } from './forwarded-headers.ts'

const host = ['Host', 'example.com']

function sent(rawHeaders: string[], rule: Record<string, string> = {}, method = 'GET') {
  return requestHeaders({ method, rawHeaders }, rule)
}

test('headers keep their order and their duplicates', () => {
  const raw = [...host, 'X-B', '1', 'Accept', '*/*', 'x-b', '2']
  assert.deepEqual(sent(raw), raw)
})

test('a rule replaces all headers of the same names', () => {
  assert.deepEqual(
    sent(['AUTHORIZATION', 'a', ...host, 'authorization', 'b', 'X-Authorization', 'c'], {
      Authorization: 'ours',
    }),
    [...host, 'X-Authorization', 'c', 'Authorization', 'ours'],
  )
})

test('a client cannot remove rule headers or Host by listing them in Connection', () => {
  assert.deepEqual(
    sent(['Connection', 'authorization, Host', 'X-A', '1', 'connection', 'x-a', ...host], {
      authorization: 'ours',
    }),
    [...host, 'authorization', 'ours'],
  )
})

test('hop-by-hop headers are not forwarded', () => {
  const hops = ['Keep-Alive', 'Proxy-Authorization', 'TE', 'Trailer', 'Upgrade', 'Proxy-Connection']
  assert.deepEqual(sent([...hops.flatMap((hop) => [hop, 'x']), ...host]), host)
})

test('a request has exactly one framing, which no rule can change', () => {
  const rule = { 'Content-Length': '9', 'transfer-encoding': 'x', Connection: 'close', TE: 'x' }
  const length = ['Content-Length', '5']
  const chunked = ['Transfer-Encoding', 'chunked']
  assert.deepEqual(sent([...length, ...host], rule, 'POST'), [...host, ...length])
  assert.deepEqual(sent([...chunked, ...host], rule, 'POST'), [...host, ...chunked])
  assert.deepEqual(sent([...length, ...chunked, ...host], rule), [...host, ...chunked])
  assert.deepEqual(sent(host, rule, 'POST'), [...host, 'Content-Length', '0'])
  assert.deepEqual(sent(host, rule, 'GET'), host)
  const named = ['Connection', 'content-length, transfer-encoding']
  assert.deepEqual(sent([...named, ...length, ...host], {}, 'POST'), [...host, ...length])
})

test('an upgrade request offers the same protocol upstream', () => {
  const raw = [
    'Connection',
    'x, Upgrade',
    'Upgrade',
    'a',
    ...host,
    'X',
    '1',
    'Sec-WebSocket-Key',
    'k',
  ]
  assert.deepEqual(upgradeHeaders({ method: 'GET', rawHeaders: raw }, { Y: '2' }, 'websocket'), [
    ...[...host, 'Sec-WebSocket-Key', 'k', 'Y', '2'],
    ...['Connection', 'Upgrade', 'Upgrade', 'websocket'],
  ])
})

test('a response keeps its Content-Length only if the length frames its body', () => {
  const cookies = ['Set-Cookie', 'a', 'set-cookie', 'b']
  const length = ['Content-Length', '5']
  const answer = (statusCode: number, ...rawHeaders: string[]) =>
    responseHeaders({ statusCode, rawHeaders })
  assert.deepEqual(answer(200, ...length, ...cookies), [...cookies, ...length])
  assert.deepEqual(answer(304, ...length), length)
  assert.deepEqual(answer(200, 'Alt-Svc', 'h3=":443"'), [])
  assert.deepEqual(answer(204, ...length), [])
  assert.deepEqual(answer(200, ...length, 'Transfer-Encoding', 'chunked'), [])
  assert.deepEqual(answer(200, 'Connection', 'close, x', 'X', '1', 'Keep-Alive', '5'), [])
})
