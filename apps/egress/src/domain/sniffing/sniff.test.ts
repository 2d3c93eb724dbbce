import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { measureCpuMs } from '@atoll/kit/cpu-time'
import { captureHello, helloWith, inRecords, serverNames } from '../../testing/client-hellos.ts'
import { createRandom, mutate } from '../../testing/random.ts'
import { sniffServerName, type SniffResult } from './sniff.ts'

const limitBytes = 16 * 1024
const request = Buffer.from('GET /a?b HTTP/1.1\r\nAccept: */*\r\nHost: Example.com:8080\r\n\r\n')
let hello: Buffer

before(async () => {
  hello = await captureHello({ servername: 'www.example.com', ALPNProtocols: ['h2', 'http/1.1'] })
})

const kindOf = (text: string | Buffer) => sniffServerName(Buffer.from(text)).kind

/** Feeds the bytes one by one. Returns the result and the number of bytes it took. */
function feed(bytes: Buffer): { result: SniffResult; after: number } {
  for (let after = 0; after <= bytes.length; after += 1) {
    const result = sniffServerName(bytes.subarray(0, after))
    if (result.kind !== 'more') return { result, after }
  }
  return { result: { kind: 'more' }, after: bytes.length }
}

test('the name is known at the last byte of a ClientHello or request head', () => {
  assert.deepEqual(feed(hello), {
    result: { kind: 'name', name: 'www.example.com', protocol: 'tls' },
    after: hello.length,
  })
  assert.deepEqual(feed(request), {
    result: { kind: 'name', name: 'example.com', protocol: 'http' },
    after: request.length,
  })
})

test('bytes after a ClientHello or request head do not change the name', () => {
  const rest = createRandom(2).bytes(70_000)
  for (const bytes of [hello, request]) {
    assert.deepEqual(sniffServerName(Buffer.concat([bytes, rest])), sniffServerName(bytes))
  }
})

test('without any bytes, more are needed', () => assert.equal(kindOf(''), 'more'))

for (const [what, text, after] of [
  ['SSH', 'SSH-2.0-OpenSSH_9.6\r\n', 4],
  ['HTTP/2 without TLS', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 12],
  ['Redis', '*1\r\n$4\r\nPING\r\n', 1],
  ['PostgreSQL', '\0\0\0\x08\x04\xd2\x16\x2f', 1],
  ['SSLv2', '\x80\x2e\x01\x03\x01', 1],
  ['mail', 'EHLO example.com\r\n', 17],
  ['an alert of TLS', '\x15\x03\x01\0\x02\x02\x28', 1],
  ['a handshake of SSH inside a record', '\x16\x03\x01\0\x10SSH-2.0-', 6],
  ['a record of TLS 4', '\x16\x04\x01', 2],
] as const) {
  test(`${what} is known to have no name after ${after} bytes`, () => {
    assert.deepEqual(feed(Buffer.from(text, 'latin1')), { result: { kind: 'none' }, after })
  })
}

test('an endless ClientHello or request head is given up at the limit', () => {
  const head = `GET / HTTP/1.1\r\n${'a: b\r\n'.repeat(3000)}`
  const target = `GET /${'a'.repeat(20_000)}`
  // One-byte records of a hello that claims to be 16,000 bytes long.
  const records = inRecords(
    Buffer.concat([Buffer.alloc(5), Buffer.from([1, 0, 0x3e, 0x80]), Buffer.alloc(16_000)]),
    1,
  )
  for (const endless of [Buffer.from(head), Buffer.from(target), records]) {
    assert.equal(kindOf(endless.subarray(0, limitBytes - 1)), 'more')
    assert.equal(kindOf(endless.subarray(0, limitBytes)), 'none')
    assert.equal(kindOf(endless), 'none')
  }
})

test('a request head may be as long as the limit and no longer', () => {
  const headOf = (length: number) => {
    const text = 'GET / HTTP/1.1\r\nHost: a.com\r\nX: \r\n\r\n'
    return text.replace('X: ', `X: ${'x'.repeat(length - text.length)}`)
  }
  assert.equal(kindOf(headOf(limitBytes)), 'name')
  assert.equal(kindOf(headOf(limitBytes + 1)), 'none')
})

test('parsing time is linear for hostile input of the maximum size', async () => {
  const fill = (start: string, piece: string, end = '') =>
    Buffer.from(
      start + piece.repeat(limitBytes).slice(0, limitBytes - start.length - end.length) + end,
      'latin1',
    )
  const line = 'GET / HTTP/1.1\r\n'
  const inputs = [
    fill(`${line}Host:`, ' ', '\0\r\n\r\n'),
    fill(`${line}Host: a`, ' ', 'b\r\n\r\n'),
    fill(`${line}Host: a`, ':1', '\r\n\r\n'),
    fill(`${line}Host: a`, '.a', '\r\n\r\n'),
    fill(`${line}Host: a`, '-', '\r\n\r\n'),
    fill(line, 'a:\r\n', '\r\n\r\n'),
    fill(line, 'a', '\r\n\r\n'),
    fill('GET http://', 'a@', ' HTTP/1.1\r\nHost: a\r\n\r\n'),
    fill('GET ', ' '),
    fill('', 'GET '),
    fill('GET /', '\xff', '\0'),
    inRecords(helloWith(serverNames([0, 'a'.repeat(2000)])), 1),
    helloWith(...Array.from({ length: 1000 }, () => serverNames([0, 'a']))),
  ]
  const cpuMs = await measureCpuMs(() => {
    for (const input of inputs) for (let times = 0; times < 20; times += 1) sniffServerName(input)
  })
  // A search that is not linear takes a hundred times as long.
  assert.ok(cpuMs < 3000, `${cpuMs} ms`)
})

test('random bytes never throw and never yield a name', () => {
  const random = createRandom(3)
  const starts = [
    '',
    '\x16',
    '\x16\x03\x01',
    '\x16\x03\x01\0\x40\x01\0\0\x3c\x03\x03',
    'GET ',
    'GET / HTTP/1.1\r\n',
  ]
  for (let round = 0; round < 20_000; round += 1) {
    const start = starts[round % starts.length] ?? ''
    const bytes = Buffer.concat([Buffer.from(start, 'latin1'), random.bytes(random.below(200))])
    assert.notEqual(sniffServerName(bytes).kind, 'name')
  }
})

test('mutated input never throws, and yields only names that it contains', () => {
  const random = createRandom(4)
  const absolute = Buffer.from('GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\nbody')
  const small = helloWith(serverNames([0, 'a.example']))
  const kinds = new Map<string, number>()
  for (let round = 0; round < 40_000; round += 1) {
    const original = [hello, request, absolute, small][round % 4] ?? small
    const bytes = mutate(original, random)
    const result = sniffServerName(bytes)
    kinds.set(result.kind, (kinds.get(result.kind) ?? 0) + 1)
    if (result.kind !== 'name') continue
    assert.ok(bytes.toString('latin1').toLowerCase().includes(result.name))
    // The result does not depend on how the bytes arrive.
    if (round % 20 === 0) assert.deepEqual(feed(bytes).result, result)
  }
  // The fuzzer must reach each outcome often enough to mean something.
  for (const kind of ['more', 'none', 'name']) assert.ok((kinds.get(kind) ?? 0) > 1000, kind)
})

test('input without a name stays without one, whatever follows', () => {
  const random = createRandom(5)
  for (let round = 0; round < 2000; round += 1) {
    const bytes = mutate(round % 2 === 0 ? hello : request, random)
    const { result, after } = feed(bytes)
    if (result.kind === 'none' && after < bytes.length) assert.equal(kindOf(bytes), 'none')
  }
})
