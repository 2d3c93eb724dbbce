import assert from 'node:assert/strict'
import { test } from 'node:test'
import { basicUser, decideAccess, isSameSecret } from './access.ts'

const settings = { envVars: {}, defaultUser: 'root' }
const secured = { ...settings, accessToken: 'secret' }

const table = [
  { settings: undefined, method: 'GET', path: '/health', token: undefined, access: 'granted' },
  { settings: undefined, method: 'POST', path: '/init', token: undefined, access: 'granted' },
  { settings: undefined, method: 'POST', path: '/prepare', token: undefined, access: 'granted' },
  { settings: undefined, method: 'POST', path: '/trust', token: undefined, access: 'granted' },
  { settings: secured, method: 'GET', path: '/trust', token: undefined, access: 'denied' },
  { settings: undefined, method: 'GET', path: '/prepare', token: undefined, access: 'not_ready' },
  { settings: undefined, method: 'GET', path: '/init', token: undefined, access: 'not_ready' },
  { settings: undefined, method: 'POST', path: '/x', token: 'secret', access: 'not_ready' },
  { settings, method: 'POST', path: '/x', token: undefined, access: 'granted' },
  { settings: secured, method: 'POST', path: '/x', token: 'secret', access: 'granted' },
  { settings: secured, method: 'POST', path: '/x', token: 'Secret', access: 'denied' },
  { settings: secured, method: 'POST', path: '/x', token: '', access: 'denied' },
  { settings: secured, method: 'POST', path: '/x', token: undefined, access: 'denied' },
  { settings: secured, method: 'POST', path: '/health', token: undefined, access: 'denied' },
  { settings: secured, method: 'GET', path: '/health/', token: undefined, access: 'denied' },
  { settings: undefined, method: 'GET', path: '/files', token: undefined, access: 'not_ready' },
  { settings, method: 'GET', path: '/files', token: undefined, access: 'granted' },
  { settings: secured, method: 'GET', path: '/files', token: undefined, access: 'needs_signature' },
  {
    settings: secured,
    method: 'POST',
    path: '/files',
    token: undefined,
    access: 'needs_signature',
  },
  { settings: secured, method: 'HEAD', path: '/files', token: undefined, access: 'denied' },
  { settings: secured, method: 'GET', path: '/files', token: 'other', access: 'denied' },
  { settings: secured, method: 'POST', path: '/files', token: '', access: 'denied' },
  { settings: secured, method: 'POST', path: '/files/compose', token: undefined, access: 'denied' },
]

for (const { settings: known, access, ...request } of table) {
  const state = known === undefined ? 'fresh' : known === secured ? 'secured' : 'open'
  test(`${request.method} ${request.path} with ${request.token} to a ${state} sandbox`, () => {
    assert.equal(decideAccess(known, request), access)
  })
}

test('an absent secret never matches, not even another absent one', () => {
  assert.equal(isSameSecret(undefined, undefined), false)
  assert.equal(isSameSecret('', undefined), false)
  assert.equal(isSameSecret('a', 'a'), true)
})

const headers = [
  [undefined, undefined],
  ['', undefined],
  ['Bearer dXNlcjo=', undefined],
  [`Basic ${btoa('user:')}`, 'user'],
  [`basic ${btoa('user:pass:word')}`, 'user'],
  [`Basic ${btoa('user')}`, 'user'],
  [`Basic ${btoa(':pass')}`, undefined],
  ['Basic', undefined],
  ['Basic !!!', undefined],
] as const

for (const [header, user] of headers) {
  test(`the header ${header} names the user ${user}`, () => {
    assert.equal(basicUser(header), user)
  })
}
