import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatHostPort, parseHostPort } from './host-port.ts'

for (const [text, host, port] of [
  ['8.8.8.8:1', '8.8.8.8', 1],
  ['proxy.example:65535', 'proxy.example', 65_535],
  ['Proxy.Example.:1080', 'proxy.example', 1080],
] as const) {
  test(`${text} is parsed`, () => {
    const parsed = parseHostPort(text)
    assert.deepEqual(parsed, { host, port })
    assert.equal(parsed && formatHostPort(parsed), `${host}:${port}`)
  })
}

for (const text of [
  '',
  ':',
  ':1080',
  'proxy.example',
  'proxy.example:',
  'proxy.example:0',
  'proxy.example:01080',
  'proxy.example:65536',
  'proxy.example:100000',
  'proxy.example:+80',
  'proxy.example:80 ',
  'proxy.example:80\n',
  'proxy.example:80:80',
  'localhost:1080',
  '8.8.8:1080',
  '08.8.8.8:1080',
  '134744072:1080',
  '[2001:db8::1]:1080',
  '2001:db8::1:1080',
  '*.example.com:1080',
  'me:secret@proxy.example:1080',
  'socks5://proxy.example:1080',
]) {
  test(`${JSON.stringify(text)} is not a valid host and port`, () => {
    assert.equal(parseHostPort(text), undefined)
  })
}
