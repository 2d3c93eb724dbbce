import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatListenAddress, parseListenAddress, toUrl } from './listen-address.ts'

const good: [string, { host: string; port: number }, string][] = [
  ['127.0.0.1:3000', { host: '127.0.0.1', port: 3000 }, 'http://127.0.0.1:3000'],
  ['0.0.0.0:80', { host: '0.0.0.0', port: 80 }, 'http://127.0.0.1:80'],
  ['[::1]:3000', { host: '::1', port: 3000 }, 'http://[::1]:3000'],
  ['[::]:3000', { host: '::', port: 3000 }, 'http://[::1]:3000'],
  ['localhost:3000', { host: 'localhost', port: 3000 }, 'http://localhost:3000'],
  ['box.example.dev:0', { host: 'box.example.dev', port: 0 }, 'http://box.example.dev:0'],
  [':8080', { host: '127.0.0.1', port: 8080 }, 'http://127.0.0.1:8080'],
  ['node_1.rack-2:80', { host: 'node_1.rack-2', port: 80 }, 'http://node_1.rack-2:80'],
  ['8080', { host: '127.0.0.1', port: 8080 }, 'http://127.0.0.1:8080'],
]

for (const [text, address, url] of good) {
  test(`${text} is understood`, () => {
    assert.deepEqual([parseListenAddress(text), toUrl(address)], [address, url])
    assert.deepEqual(parseListenAddress(formatListenAddress(address)), address)
  })
}

for (const text of [
  '',
  'host',
  '::1:3000',
  '[x]:1',
  '1.2.3:80',
  'a:99999',
  'a:-1',
  'a:b',
  'a:1:2',
  'a\0b:1',
  'a b:1',
  'a\nb:1',
  'a/b:1',
  'user@host:1',
  '\ud800:1',
  '[fe80::1%a\0b]:1',
]) {
  test(`${JSON.stringify(text)} is refused`, () =>
    assert.equal(parseListenAddress(text), undefined))
}
