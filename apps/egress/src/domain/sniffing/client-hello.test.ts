import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SecureVersion } from 'node:tls'
import {
  captureHello,
  extension,
  helloWith,
  inRecords,
  messageOf,
  record,
  serverNames,
} from '../../testing/client-hellos.ts'
import { searchClientHello } from './client-hello.ts'

const nameIn = (bytes: Buffer) => {
  const found = searchClientHello(bytes)
  return found.kind === 'name' ? found.name : found.kind
}
const plain = helloWith(extension(43, Buffer.from([2, 3, 4])), serverNames([0, 'a.example']))

for (const version of ['TLSv1.2', 'TLSv1.3'] satisfies SecureVersion[]) {
  test(`SNI is found in the ClientHello of a ${version} client`, async () => {
    const versions = { minVersion: version, maxVersion: version }
    const hello = await captureHello({ servername: 'Www.Example.COM', ...versions })
    assert.equal(nameIn(hello), 'www.example.com')
  })

  test(`a ${version} ClientHello without SNI has no name`, async () => {
    const versions = { minVersion: version, maxVersion: version }
    assert.equal(nameIn(await captureHello({ host: '1.2.3.4', ...versions })), 'none')
  })
}

/** Enough ALPN protocols to make the ClientHello about `bytes` long. */
const large = (bytes: number) =>
  captureHello({
    servername: 'large.example',
    ALPNProtocols: Array.from({ length: bytes / 100 }, (_, index) => `${index}`.padEnd(99, 'x')),
  })

test('SNI is found in a large ClientHello, whole or split into records of any size', async () => {
  const hello = await large(12_000)
  assert.ok(hello.length > 12_000)
  assert.equal(nameIn(hello), 'large.example')
  for (const size of [1, 2, 3, 4, 5, 100, 1000, 12_000]) {
    assert.equal(nameIn(inRecords(hello, size)), 'large.example')
    assert.equal(nameIn(inRecords(hello, size).subarray(0, -1)), 'more')
  }
})

test('a ClientHello that claims to exceed the limit is rejected at once', async () => {
  const hello = await large(20_000)
  assert.ok(hello.readUIntBE(6, 3) > 20_000)
  assert.equal(nameIn(hello.subarray(0, 8)), 'more')
  assert.equal(nameIn(hello.subarray(0, 9)), 'none')
})

test('SNI that is split across two records is found', () => {
  const message = messageOf(plain)
  const middle = message.indexOf('a.example') + 4
  const split = [message.subarray(0, middle), message.subarray(middle)].map(record)
  assert.equal(nameIn(Buffer.concat(split)), 'a.example')
})

for (const [attack, hello] of [
  ['two names', helloWith(serverNames([0, 'a.example'], [0, 'b.example']))],
  ['a second name of another type', helloWith(serverNames([0, 'a.example'], [1, 'b.example']))],
  ['a name of another type', helloWith(serverNames([1, 'a.example']))],
  ['two extensions', helloWith(serverNames([0, 'a.example']), serverNames([0, 'a.example']))],
  ['an empty list', helloWith(serverNames())],
  ['an empty extension', helloWith(extension(0, Buffer.alloc(0)))],
  ['an empty name', helloWith(serverNames([0, '']))],
  ['no extensions', helloWith()],
  ['an address', helloWith(serverNames([0, '10.0.0.1']))],
  ['an address of IPv6', helloWith(serverNames([0, '::1']))],
  ['a name with a NUL', helloWith(serverNames([0, 'a.example\0.b.example']))],
  ['a name with a line end', helloWith(serverNames([0, 'a.example\r\n']))],
  ['a name with a port', helloWith(serverNames([0, 'a.example:443']))],
  ['a list shorter than its extension', helloWith(extension(0, Buffer.from('\0\x04\0\0\x01abc')))],
  ['a list longer than its extension', helloWith(extension(0, Buffer.from('\0\x09\0\0\x01a')))],
  ['a name longer than its list', helloWith(extension(0, Buffer.from('\0\x04\0\0\x09a')))],
  ['extensions that end early', helloWith(serverNames([0, 'a.example']), Buffer.from([0, 1, 0]))],
] as const) {
  test(`a ClientHello with ${attack} has no name`, () => assert.equal(nameIn(hello), 'none'))
}

/** ClientHello with one byte of its message replaced. */
const changed = (at: number, byte: number) => {
  const bytes = Buffer.from(plain)
  bytes[5 + at] = byte
  return bytes
}

for (const [attack, hello] of [
  ['another message type', changed(0, 2)],
  ['another TLS version', changed(4, 2)],
  ['a session that reaches past the end', changed(38, 255)],
  ['a cipher list of odd length', changed(40, 3)],
  ['extensions that reach past the end', changed(46, 255)],
  ['extensions that end before the message', changed(46, 1)],
  ['an empty record before it', Buffer.concat([record(Buffer.alloc(0)), plain])],
  ['a record that is too large', Buffer.concat([Buffer.from([22, 3, 1, 0x40, 1]), plain])],
] as const) {
  test(`a ClientHello with ${attack} has no name`, () => assert.equal(nameIn(hello), 'none'))
}

test('a record of another type inside the ClientHello ends the search', () => {
  const [first, second] = [messageOf(plain).subarray(0, 20), messageOf(plain).subarray(20)]
  const alert = Buffer.from([21, 3, 3, 0, 2, 1, 0])
  assert.equal(nameIn(Buffer.concat([record(first), alert, record(second)])), 'none')
})
