import assert from 'node:assert/strict'
import { test } from 'node:test'
import { searchRequestHead } from './request-head.ts'

const nameIn = (text: string) => {
  const found = searchRequestHead(Buffer.from(text, 'latin1'))
  return found.kind === 'name' ? found.name : found.kind
}
const get = (...lines: readonly string[]) => ['GET / HTTP/1.1', ...lines, '', ''].join('\r\n')

for (const [what, text] of [
  ['a plain Host header', get('Host: a.example')],
  ['HTTP/1.0', 'GET / HTTP/1.0\r\nhost: a.example\r\n\r\n'],
  ['a Host in upper case', get('HOST: A.Example')],
  ['a trailing dot in the host', get('Host: a.example.')],
  ['a host with a port', get('Host: a.example:65535')],
  ['white space around the host', get('Host:\t  a.example \t')],
  ['no space after the colon', get('Host:a.example')],
  ['other fields', get('X-Host: b.example', 'Host: a.example', 'Empty:', 'Cookie: \xe4=\t1')],
  ['an unknown method', 'Frobnicate / HTTP/1.1\r\nHost: a.example\r\n\r\n'],
  ['the longest method', `${'M'.repeat(32)} / HTTP/1.1\r\nHost: a.example\r\n\r\n`],
  ['the target *', 'OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n'],
  ['a target not in ASCII', 'GET /\xc3\xa4 HTTP/1.1\r\nHost: a.example\r\n\r\n'],
  ['its host in the target', 'GET http://A.example/x HTTP/1.1\r\nHost: a.Example\r\n\r\n'],
  ['its port in the target', 'GET http://a.example:81?x HTTP/1.1\r\nHost: a.example:81\r\n\r\n'],
  ['a second request after it', `${get('Host: a.example')}${get('Host: b.example')}`],
  ['a body that looks like a header', `${get('Host: a.example')}Host: b.example\r\n\r\n`],
] as const) {
  test(`the host is found in a request with ${what}`, () => assert.equal(nameIn(text), 'a.example'))
}

for (const [attack, text] of [
  ['no host', get('Accept: */*')],
  ['no field at all', get()],
  ['an empty host', get('Host:')],
  ['two hosts', get('Host: a.example', 'Host: b.example')],
  ['the same host twice', get('Host: a.example', 'hOST: a.example')],
  ['an empty host and another', get('Host:', 'Host: a.example')],
  ['two words as host', get('Host: a.example b.example')],
  ['hosts in a list', get('Host: a.example, b.example')],
  ['a host with a user', get('Host: a.example@b.example')],
  ['a host that is an address', get('Host: 10.0.0.1')],
  ['a host that is an address with a port', get('Host: 10.0.0.1:80')],
  ['a host that is an IPv6 address', get('Host: [::1]:80')],
  ['a host with a path', get('Host: a.example/b')],
  ['a host with a port of letters', get('Host: a.example:http')],
  ['a host with two ports', get('Host: a.example:80:80')],
  ['a host with a NUL', get('Host: a.example\0')],
  ['a host with a no-break space', get('Host: a.example\xa0')],
  ['a space before the colon', get('Host : b.example', 'Host: a.example')],
  ['a line without a colon', get('Host', 'Host: a.example')],
  ['a field without a name', get(': x', 'Host: a.example')],
  ['a control character in a field', get('X: \x01', 'Host: a.example')],
  ['a folded host', get('Host: a.example', ' .b.example')],
  ['a folded line', get('X: y', '\tHost: b.example', 'Host: a.example')],
  ['a folded line right after the request line', get(' Host: b.example', 'Host: a.example')],
  ['a bare line feed', get('X: y\nHost: b.example', 'Host: a.example')],
  ['a bare carriage return', get('X: y\rHost: b.example', 'Host: a.example')],
  ['a bare line feed at the end', 'GET / HTTP/1.1\r\nHost: a.example\n\n'],
  ['bare line feeds only', 'GET / HTTP/1.1\nHost: a.example\n\n'],
  ['a target for another host', 'GET http://b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n'],
  ['a target for another port', 'GET http://a.example:81/ HTTP/1.1\r\nHost: a.example\r\n\r\n'],
  ['a target with a user', 'GET http://a.example@b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n'],
  ['a backslash', 'GET http://b.example\\@a.example HTTP/1.1\r\nHost: a.example\r\n\r\n'],
  ['a target without a host', 'GET http:///x HTTP/1.1\r\nHost: a.example\r\n\r\n'],
  ['a target of another scheme', 'GET ftp://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n'],
  ['a target without a slash', 'GET a.example HTTP/1.1\r\nHost: a.example\r\n\r\n'],
  ['the method CONNECT', 'CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n'],
  ['the method connect and a path', 'connect / HTTP/1.1\r\nHost: a.example\r\n\r\n'],
  ['a tab instead of a space', 'GET\t/ HTTP/1.1\r\nHost: a.example\r\n\r\n'],
  ['two spaces', 'GET  / HTTP/1.1\r\nHost: a.example\r\n\r\n'],
  ['a space after the version', 'GET / HTTP/1.1 \r\nHost: a.example\r\n\r\n'],
  ['no version', 'GET /\r\nHost: a.example\r\n\r\n'],
  ['version 1.2', 'GET / HTTP/1.2\r\nHost: a.example\r\n\r\n'],
  ['version 2', 'GET / HTTP/2.0\r\nHost: a.example\r\n\r\n'],
  ['an empty line before it', `\r\n${get('Host: a.example')}`],
  ['a method that is too long', `${'M'.repeat(33)} / HTTP/1.1\r\nHost: a.example\r\n\r\n`],
  ['a method with a digit', 'G3T / HTTP/1.1\r\nHost: a.example\r\n\r\n'],
] as const) {
  test(`a request with ${attack} has no name`, () => assert.equal(nameIn(text), 'none'))
}

for (const text of [
  'G',
  'M'.repeat(32),
  'GET ',
  'GET /',
  'GET / ',
  'GET / HTTP/1',
  'GET / HTTP/1.1\r',
  'GET / HTTP/1.1\r\n',
  'GET / HTTP/1.1\r\nHost: a.example\r',
  'GET / HTTP/1.1\r\nHost: a.example\r\n\r',
]) {
  test(`more bytes are needed after ${JSON.stringify(text)}`, () =>
    assert.equal(nameIn(text), 'more'))
}

for (const text of [
  ' ',
  '\n',
  'M'.repeat(33),
  'GET  ',
  'GET /\t',
  'GET / G',
  'GET / HTTP/2',
  'GET / HTTP/1.1 ',
  'GET / HTTP/1.1\n',
  'CONNECT ',
  'CONNECT / HTTP/1.1\r\n',
  'GET x HTTP/1.1\r\n',
  'GET / HTTP/1.1\r\n ',
  'GET / HTTP/1.1\r\nHost: a\n',
  'GET / HTTP/1.1\r\nHost: a\rb',
]) {
  test(`no more bytes are needed after ${JSON.stringify(text)}`, () =>
    assert.equal(nameIn(text), 'none'))
}
