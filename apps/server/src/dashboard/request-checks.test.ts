import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { TLSSocket } from 'node:tls'
import { isForHost, isUsableDashboardHost } from './host.ts'
import { isTeamOperation, withoutTokens } from './platform.ts'
import { findCrossOriginObjection } from './request-checks.ts'
import { readSessionCookie, readSessionToken, sessionCookie } from './session-cookie.ts'

const host = 'ui.localhost:3000'
const own = 'http://ui.localhost:3000'

const accepted: [string, Record<string, string>, boolean?][] = [
  ['GET', {}],
  ['GET', { 'sec-fetch-site': 'same-origin' }],
  ['GET', { 'sec-fetch-site': 'none' }],
  ['POST', { origin: own }],
  ['POST', { origin: own, 'sec-fetch-site': 'same-origin' }],
  ['DELETE', { origin: 'https://ui.localhost:3000' }],
  ['GET', { origin: own, 'sec-fetch-site': 'same-origin' }, true],
]
for (const [method, headers, isUpgrade = false] of accepted) {
  test(`${method} with ${JSON.stringify(headers)}${isUpgrade ? ' as WebSocket' : ''} is accepted`, () => {
    const request = { method, headers: { host, ...headers }, isUpgrade }
    assert.equal(findCrossOriginObjection(request), undefined)
  })
}

const refused: [string, Record<string, string>, boolean?][] = [
  ['GET', { 'sec-fetch-site': 'cross-site' }],
  ['GET', { 'sec-fetch-site': 'same-site' }],
  ['GET', { origin: 'http://8000-abc.localhost:3000' }],
  ['POST', {}],
  ['POST', { origin: 'null' }],
  ['POST', { origin: 'http://localhost:3000' }],
  ['POST', { origin: 'http://ui.localhost:3001' }],
  ['POST', { origin: 'http://ui.localhost:3000.evil.example' }],
  ['POST', { origin: own, 'sec-fetch-site': 'same-site' }],
  ['POST', { origin: own, 'sec-fetch-site': 'none' }],
  ['DELETE', { 'sec-fetch-site': 'same-origin' }],
  ['GET', {}, true],
  ['GET', { origin: 'http://8000-abc.localhost:3000' }, true],
]
for (const [method, headers, isUpgrade = false] of refused) {
  test(`${method} with ${JSON.stringify(headers)}${isUpgrade ? ' as WebSocket' : ''} is refused`, () => {
    const request = { method, headers: { host, ...headers }, isUpgrade }
    assert.equal(typeof findCrossOriginObjection(request), 'string')
  })
}

test('over TLS the cookie has the prefix that siblings cannot set', () => {
  assert.match(
    sessionCookie('t', true),
    /^__Host-atoll-session=t; Secure; Path=\/; HttpOnly; SameSite=Strict;/,
  )
  assert.match(sessionCookie('t', false), /^atoll-session=t; Path=\/; HttpOnly; SameSite=Strict;/)
})

test('the cookie of TLS wins, and two of one name count as none', () => {
  assert.equal(readSessionCookie('atoll-session=a; __Host-atoll-session=b', false), 'b')
  assert.equal(readSessionCookie('other=1; atoll-session=a', false), 'a')
  assert.equal(readSessionCookie('atoll-session=a; atoll-session=b', false), undefined)
  assert.equal(readSessionCookie('xatoll-session=a', false), undefined)
  assert.equal(readSessionCookie(undefined, false), undefined)
})

test('over TLS a cookie without the prefix does not count', () => {
  const cookie = 'atoll-session=planted; __Host-atoll-session=own'
  const headers = { cookie: 'atoll-session=planted' }
  const plain = new Socket()
  assert.equal(readSessionToken({ headers, socket: plain }), 'planted')
  for (const secure of [
    { headers, socket: new TLSSocket(plain) },
    { headers: { ...headers, origin: 'https://ui.example.com' }, socket: plain },
    { headers: { ...headers, 'x-forwarded-proto': 'http, HTTPS' }, socket: plain },
  ]) {
    assert.equal(readSessionToken(secure), undefined)
    assert.equal(readSessionToken({ ...secure, headers: { ...secure.headers, cookie } }), 'own')
  }
})

test('the host of the dashboard cannot be one of sandbox traffic', () => {
  for (const name of ['ui.localhost', 'console.example.com', 'my-ui.example.com']) {
    assert.equal(isUsableDashboardHost(name), true, name)
  }
  for (const name of [
    'localhost',
    '127.0.0.1',
    'sandbox.example.com',
    '8000-abc.example.com',
    'a b.c',
    '',
    'x..y',
  ]) {
    assert.equal(isUsableDashboardHost(name), false, name)
  }
})

test('requests are recognised by host, in any case and with any port', () => {
  const is = (name: string, url = '/') =>
    isForHost({ headers: { host: name }, url }, 'ui.localhost')
  assert.deepEqual(
    [is('ui.localhost'), is('UI.localhost:3000'), is('localhost:3000')],
    [true, true, false],
  )
  assert.deepEqual([is('xui.localhost'), is('ui.localhost.evil.example')], [false, false])
  assert.equal(is('localhost:3000', 'http://ui.localhost:3000/health'), true)
})

test('only operations of a team are forwarded', () => {
  assert.equal(isTeamOperation('GET', '/v2/sandboxes'), true)
  assert.equal(isTeamOperation('DELETE', '/sandboxes/iabc'), true)
  for (const [method, path] of [
    ['GET', '/docs'],
    ['GET', '/openapi.json'],
    ['GET', '/admin/teams'],
    ['GET', '/nodes'],
    ['POST', '/access-tokens'],
    ['GET', '/sandboxes/iabc/../../admin/teams'],
    ['PUT', '/v2/sandboxes'],
  ] as const) {
    assert.equal(isTeamOperation(method, path), false, `${method} ${path}`)
  }
})

test('tokens of sandboxes are removed from answers, however deep', () => {
  const sandbox = { sandboxID: 'iabc', envdAccessToken: 'secret', trafficAccessToken: 'secret' }
  const shown = withoutTokens([{ sandbox }, sandbox])
  assert.deepEqual(shown, [{ sandbox: { sandboxID: 'iabc' } }, { sandboxID: 'iabc' }])
})
