import assert from 'node:assert/strict'
import { test } from 'node:test'
import { originOf } from './forwarded.ts'
import type { Arrival } from './forwarded.ts'

const trusted = new Set(['10.0.0.1', '10.0.0.2', '2001:db8::1'])
const isTrusted = (address: string) => trusted.has(address)

function arrival(address: string, headers: Arrival['headers'] = {}, isTls = false): Arrival {
  return { address, isTls, authority: '80-abc.atoll.dev', headers }
}

const forged = {
  'x-forwarded-for': '1.2.3.4',
  'x-forwarded-proto': 'https',
  'x-forwarded-host': 'evil.test',
}

test('headers of a client that is no trusted proxy count for nothing', () => {
  for (const address of ['9.9.9.9', '::ffff:9.9.9.9']) {
    assert.deepEqual(originOf(arrival(address, forged), isTrusted), {
      for: '9.9.9.9',
      proto: 'http',
      host: '80-abc.atoll.dev',
    })
  }
})

test('headers of a trusted proxy are believed', () => {
  for (const address of ['10.0.0.1', '::ffff:10.0.0.1', '2001:db8::1']) {
    assert.deepEqual(originOf(arrival(address, forged), isTrusted), {
      for: '1.2.3.4',
      proto: 'https',
      host: 'evil.test',
    })
  }
})

test('a trusted proxy that sets no headers is the client', () => {
  assert.deepEqual(originOf(arrival('10.0.0.1', {}, true), isTrusted), {
    for: '10.0.0.1',
    proto: 'https',
    host: '80-abc.atoll.dev',
  })
})

const chains: [string, string, string][] = [
  ['entries that the client forged', '6.6.6.6, 1.2.3.4, 10.0.0.2', '1.2.3.4'],
  ['a forged trusted address', '10.0.0.2, 1.2.3.4', '1.2.3.4'],
  ['only trusted addresses', '10.0.0.2', '10.0.0.2'],
  ['an IPv4 address with a port', '1.2.3.4:5678', '1.2.3.4'],
  ['an IPv6 address with a port', '[2001:db8::9]:5678', '2001:db8::9'],
  ['an IPv6 address', '2001:db8::9', '2001:db8::9'],
  ['text that is no address', '1.2.3.4, unknown', '10.0.0.1'],
  ['text that is no address, behind a trusted proxy', 'unknown, 10.0.0.2', '10.0.0.2'],
  ['nothing', '', '10.0.0.1'],
]

for (const [name, list, expected] of chains) {
  test(`the client is found in a list with ${name}`, () => {
    const headers = { 'x-forwarded-for': list }
    assert.equal(originOf(arrival('10.0.0.1', headers), isTrusted).for, expected)
  })
}

test('of several schemes and hosts, the last counts, and invalid ones do not', () => {
  const several = { 'x-forwarded-proto': 'http, HTTPS', 'x-forwarded-host': 'evil, a.dev:8443' }
  const { proto, host } = originOf(arrival('10.0.0.1', several), isTrusted)
  assert.deepEqual([proto, host], ['https', 'a.dev:8443'])
  const invalid = { 'x-forwarded-proto': 'ftp', 'x-forwarded-host': 'a b/<script>' }
  const kept = originOf(arrival('10.0.0.1', invalid), isTrusted)
  assert.deepEqual([kept.proto, kept.host], ['http', '80-abc.atoll.dev'])
})
