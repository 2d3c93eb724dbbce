import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findRefusal, originFormPath } from './forwarded-request.ts'

const name = 'api.example.com'

function refusalStatus(method: string, url: string, ...rawHeaders: string[]) {
  return findRefusal({ method, url, rawHeaders }, name)?.status
}

for (const host of [name, `${name}:8443`, 'API.example.com', `${name}.`]) {
  test(`a request with Host ${host} is forwarded`, () => {
    assert.equal(refusalStatus('GET', '/', 'hOST', host), undefined)
    assert.equal(refusalStatus('GET', `http://${host}/x`, 'Host', host), undefined)
  })
}

for (const host of [
  'example.com',
  'a.api.example.com',
  `${name}, other.com`,
  `x@${name}`,
  `${name}:80:90`,
  '127.0.0.1',
  '',
]) {
  test(`a request with Host ${JSON.stringify(host)} is refused with 421`, () => {
    assert.equal(refusalStatus('GET', '/', 'Host', host), 421)
  })
}

test('a request for another host, for several hosts or for none is refused', () => {
  assert.equal(refusalStatus('GET', '/'), 400)
  assert.equal(refusalStatus('GET', '/', 'Host', name, 'host', name), 400)
  assert.equal(refusalStatus('GET', 'http://other.com/', 'Host', name), 421)
  assert.equal(refusalStatus('GET', `http://other.com\\@${name}/`, 'Host', name), 421)
  assert.equal(refusalStatus('GET', `ftp://${name}/`, 'Host', name), 400)
  assert.equal(refusalStatus('GET', 'x', 'Host', name), 400)
})

test('CONNECT and TRACE are refused', () => {
  assert.equal(refusalStatus('CONNECT', `${name}:443`, 'Host', name), 400)
  assert.equal(refusalStatus('TRACE', '/', 'Host', name), 405)
})

for (const codings of [['gzip'], ['gzip, chunked'], ['chunked', 'chunked'], ['']]) {
  test(`transfer codings ${JSON.stringify(codings)} are refused`, () => {
    const fields = codings.flatMap((coding) => ['Transfer-Encoding', coding])
    assert.equal(refusalStatus('POST', '/', 'Host', name, ...fields), 501)
  })
}

for (const [url, path] of [
  ['/a?b', '/a?b'],
  ['*', '*'],
  [`http://${name}`, '/'],
  [`HTTPS://${name}:1?b`, '/?b'],
  [`http://${name}/a//b`, '/a//b'],
] as const) {
  test(`the target ${url} is sent as ${path}`, () => {
    assert.equal(originFormPath({ url, rawHeaders: [] }), path)
  })
}
