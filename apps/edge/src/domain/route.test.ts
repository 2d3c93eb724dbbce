import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSandboxTraffic, routeOf } from './route.ts'
import type { RequestHead } from './route.ts'

const svc = { 'svc-sandbox-id': 'abc1', 'svc-sandbox-port': '49983' }

function head(host: string, headers: Record<string, string> = {}, url = '/x?y=1'): RequestHead {
  return { method: 'GET', url, headers: { host, ...headers } }
}

const routed: [string, RequestHead, { id: string; port: number }][] = [
  ['the Svc headers on localhost', head('localhost:3000', svc), { id: 'abc1', port: 49983 }],
  ['the Svc headers on an IPv4 address', head('10.1.2.3', svc), { id: 'abc1', port: 49983 }],
  ['the Svc headers on an IPv6 address', head('[::1]:3000', svc), { id: 'abc1', port: 49983 }],
  ['the Svc headers on a sandbox host', head('sandbox.x.dev', svc), { id: 'abc1', port: 49983 }],
  [
    'the E2b headers',
    head('localhost', { 'e2b-sandbox-id': 'abc2', 'e2b-sandbox-port': '80' }),
    { id: 'abc2', port: 80 },
  ],
  [
    'one header of each kind',
    head('localhost', { 'svc-sandbox-id': 'abc2', 'e2b-sandbox-port': '80' }),
    { id: 'abc2', port: 80 },
  ],
  [
    'both kinds in agreement',
    head('localhost', { ...svc, 'e2b-sandbox-id': 'abc1', 'e2b-sandbox-port': '49983' }),
    { id: 'abc1', port: 49983 },
  ],
  ['the host name', head('8080-abc3.atoll.dev'), { id: 'abc3', port: 8080 }],
  ['a host name under localhost', head('8080-abc3.localhost:3000'), { id: 'abc3', port: 8080 }],
  ['a host name in capitals', head('8080-ABC3.Atoll.dev'), { id: 'abc3', port: 8080 }],
  ['a host name with another suffix', head('8080-abc3-xyz.atoll.dev'), { id: 'abc3', port: 8080 }],
  ['the host name, not the headers', head('8080-abc3.atoll.dev', svc), { id: 'abc3', port: 8080 }],
  ['a port out of range', head('99999-abc3.atoll.dev'), { id: 'abc3', port: 99999 }],
]

for (const [name, given, expected] of routed) {
  test(`a request is routed by ${name}`, () => {
    const route = routeOf(given)
    assert.ok(route.kind === 'target', JSON.stringify(route))
    const { sandboxId, port, path } = route.target
    assert.deepEqual({ id: sandboxId, port, path }, { ...expected, path: '/x?y=1' })
    assert.equal(isSandboxTraffic(given), true)
  })
}

const refusals: [string, RequestHead, RegExp][] = [
  ['no id header', head('localhost', { 'svc-sandbox-port': '1' }), /Svc-Sandbox-Id is missing/],
  ['no port header', head('localhost', { 'e2b-sandbox-id': 'a' }), /Svc-Sandbox-Port is missing/],
  ['an empty id', head('localhost', { ...svc, 'svc-sandbox-id': '' }), /ID must consist/],
  ['an id given twice', head('localhost', { ...svc, 'svc-sandbox-id': 'a, b' }), /ID must consist/],
  [
    'an id that is a path',
    head('localhost', { ...svc, 'svc-sandbox-id': '../a' }),
    /ID must consist/,
  ],
  ['an id in capitals', head('localhost', { ...svc, 'svc-sandbox-id': 'ABC' }), /ID must consist/],
  ['headers that differ', head('localhost', { ...svc, 'e2b-sandbox-id': 'x' }), /contradict/],
  ['a negative port', head('localhost', { ...svc, 'svc-sandbox-port': '-1' }), /port must be/],
  ['a port in words', head('localhost', { ...svc, 'svc-sandbox-port': 'http' }), /port must be/],
  ['a hexadecimal port', head('localhost', { ...svc, 'svc-sandbox-port': '0x50' }), /port must be/],
  ['a port with a sign', head('localhost', { ...svc, 'svc-sandbox-port': '+80' }), /port must be/],
  ['an endless port', head('localhost', { ...svc, 'svc-sandbox-port': '9'.repeat(30) }), /port mu/],
  ['a host without a sandbox', head('example.com'), /names no sandbox/],
  ['a host without a domain', head('80-abc'), /names no sandbox/],
  ['headers on a foreign host', head('example.com', svc), /names no sandbox/],
  ['an address and no headers', head('127.0.0.1:3000'), /names no sandbox/],
  ['no host at all', { method: 'GET', url: '/', headers: {} }, /names no sandbox/],
  ['a target that is no path', head('localhost', svc, 'init'), /must be a path/],
  ['a target with user info', head('localhost', svc, 'http://a@b/init'), /must be a path/],
  ['a star for GET', head('localhost', svc, '*'), /must be a path/],
]

for (const [name, given, message] of refusals) {
  test(`a request is refused for ${name}`, () => {
    const route = routeOf(given)
    assert.ok(route.kind === 'refused', JSON.stringify(route))
    assert.match(route.message, message)
  })
}

test('the authority of an absolute target overrides Host and is forwarded', () => {
  const route = routeOf(head('1-other.atoll.dev', {}, 'http://80-abc.atoll.dev?q'))
  assert.deepEqual(route, {
    kind: 'target',
    target: {
      sandboxId: 'abc',
      port: 80,
      authority: '80-abc.atoll.dev',
      path: '/?q',
      isOnSharedHost: false,
    },
  })
})

const signed = '/files?path=%2Fa%20b&username=anna&signature=v1_x%2By&signature_expiration=0170'

test('a signed URL on a shared host is routed by its signature', () => {
  const given = head('localhost:3000', {}, signed)
  assert.equal(isSandboxTraffic(given), true)
  assert.deepEqual(routeOf(given), {
    kind: 'signed',
    file: {
      path: '/a b',
      username: 'anna',
      operation: 'read',
      signature: 'v1_x+y',
      expiration: '170',
    },
    target: {
      authority: 'localhost:3000',
      path: signed,
      port: 49_983,
      isOnSharedHost: true,
    },
  })
})

const operations: [string, Record<string, string>, string][] = [
  ['GET', {}, 'read'],
  ['HEAD', {}, 'read'],
  ['POST', {}, 'write'],
  ['OPTIONS', { 'access-control-request-method': 'POST' }, 'write'],
  ['OPTIONS', { 'access-control-request-method': 'GET' }, 'read'],
]

for (const [method, headers, operation] of operations) {
  test(`${method} of a signed URL with ${JSON.stringify(headers)} is to ${operation}`, () => {
    const route = routeOf({ ...head('127.0.0.1', headers, '/files?signature=x'), method })
    assert.equal(route.kind === 'signed' && route.file.operation, operation)
  })
}

for (const query of [
  'signature=x&signature=y',
  'signature=%',
  'signature=x&signature_expiration=a',
]) {
  test(`a signed URL with ${query} is refused`, () => {
    const given = head('localhost', {}, `/files?path=/a&${query}`)
    assert.equal(isSandboxTraffic(given), true)
    assert.equal(routeOf(given).kind, 'refused')
  })
}

test('routing headers and host names override the signature', () => {
  for (const given of [head('localhost', svc, signed), head('49983-abc1.x.dev', {}, signed)]) {
    const route = routeOf(given)
    assert.equal(route.kind === 'target' && route.target.sandboxId, 'abc1')
  }
})

const platform: [string, RequestHead][] = [
  ['a signed URL on another host', head('api.atoll.dev', {}, signed)],
  ['a file without a signature', head('localhost', {}, '/files?path=/a')],
  ['a signature for another path', head('localhost', {}, '/v2/files?signature=x')],
  ['a plain host', head('localhost:3000')],
  ['an API host', head('api.atoll.dev', svc)],
  ['a machine named with a number', head('80-abc')],
  ['an address', head('10.0.0.1')],
  ['no host', { method: 'GET', url: '/', headers: {} }],
]

for (const [name, given] of platform) {
  test(`${name} is platform traffic`, () => assert.equal(isSandboxTraffic(given), false))
}

const served: [string, RequestHead, boolean][] = [
  ['its domain', head('8080-abc3.atoll.dev'), true],
  ['its domain with a port', head('8080-abc3.Atoll.dev:8443'), true],
  ['localhost', head('8080-abc3.localhost:3000'), true],
  ['another domain', head('8080-abc3.evil.dev'), false],
  ['a domain below its own', head('8080-abc3.x.atoll.dev'), false],
  ['a domain that ends like its own', head('8080-abc3.evilatoll.dev'), false],
  ['headers on its API host', head('api.atoll.dev', svc), true],
  ['headers on its domain', head('atoll.dev:8443', svc), true],
  ['headers on its sandbox host', head('sandbox.atoll.dev', svc), true],
  ['headers on an address', head('127.0.0.1:3000', svc), true],
  ['headers on a sandbox host of another domain', head('sandbox.evil.dev', svc), false],
  ['headers on an API host of another domain', head('api.evil.dev', svc), false],
  ['headers on another host of its domain', head('ui.atoll.dev', svc), false],
]

for (const [name, given, isRouted] of served) {
  test(`a server with a domain ${isRouted ? 'routes' : 'does not route'} by ${name}`, () => {
    assert.equal(routeOf(given, 'atoll.dev').kind, isRouted ? 'target' : 'refused')
  })
}

test('a host name of another domain is refused by the edge, not answered by the API', () => {
  assert.equal(isSandboxTraffic(head('8080-abc3.evil.dev'), 'atoll.dev'), true)
  const route = routeOf(head('8080-abc3.evil.dev'), 'atoll.dev')
  assert.ok(route.kind === 'refused')
  assert.match(route.message, /under the domain atoll\.dev, not under evil\.dev/)
})
