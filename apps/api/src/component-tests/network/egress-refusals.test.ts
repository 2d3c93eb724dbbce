import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'

/** Rejected domains and proxies: nothing is created or changed, and no error contains a secret. */

const everything = '0.0.0.0/0'
const kept = {
  allowOut: ['kept.example'],
  denyOut: [everything],
  egressProxy: { address: 'kept.example:1080', username: 'me', password: 'kept secret' },
}

let api: ApiUnderTest
let running: string
before(async () => {
  api = await startApiUnderTest()
  running = await api.create({ network: kept })
})
after(() => api[Symbol.asyncDispose]())

const secret = 'Hush-Hush'
const label = 'a'.repeat(63)
const at = 'a.b:1'
const references = (count: number, from: number) =>
  Array.from({ length: count }, (_, index) => `\${e2b.secrets.s${from}-${index}}`).join('')
const rule = (headers: object) => ({ 'a.b': [{ transform: { headers } }] })

const noDomains = [
  '',
  '*',
  '*.',
  '.',
  'localhost',
  '*.com',
  '*.*.a.b',
  'a.*.b',
  '*a.b',
  'a..b',
  '.a.b',
  'a.b..',
  '-a.b',
  'a-.b',
  'a b.c',
  'ü.de',
  'a.b:80',
  'https://a.b',
  'a.b/24',
  '1.2.3',
  '1.2.3.256',
  '1.2.3.4/33',
  '1.2.3.4.',
  'fd00::1%eth0',
  `a${label}.b`,
  [label, label, label, label].join('.'),
]

const noAddresses = [
  '',
  'a.b',
  'a.b:',
  'a.b:0',
  'a.b:65536',
  'a.b:080',
  'a.b:http',
  ':1080',
  'localhost:1080',
  '*.a.b:1080',
  '1.2.3:1080',
  '[2001:db8::1]:1080',
  'socks5://a.b:1080',
  `me:${secret}@a.b:1080`,
]

const internalAddresses = [
  '0.0.0.0',
  '0.1.2.3',
  '10.0.0.1',
  '100.64.0.1',
  '100.127.255.255',
  '127.0.0.1',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.1',
  '192.0.2.1',
  '192.168.1.1',
  '198.18.0.1',
  '198.51.100.1',
  '203.0.113.1',
  '224.0.0.1',
  '240.0.0.1',
  '255.255.255.255',
]

const ruleRefusals: readonly (readonly [object, RegExp])[] = [
  [{ '*': [] }, /rules: "\*" is not a domain/],
  [{ '': [] }, /rules: "" is not a domain/],
  [{ '*.*.a.b': [] }, /rules: "\*\.\*\.a\.b" is not a domain/],
  [{ '1.2.3.4': [] }, /rules: "1\.2\.3\.4" is not a domain/],
  [{ 'http://a.b': [] }, /rules: "http:\/\/a\.b" is not a domain/],
  [{ 'a.b': [], 'A.b.': [] }, /rules: "a\.b" appears twice/],
  [
    Object.fromEntries(Array.from({ length: 11 }, (_, index) => [`a${index}.b`, []])),
    /rules: at most 10 domains/,
  ],
  [{ [`${'a.'.repeat(64)}b`]: [] }, /rules: "a\..* is not a domain of at most 128/],
  [{ 'a.b': {} }, /rules\.a\.b: expected array/],
  [{ 'a.b': [{}, {}] }, /rules\.a\.b: a domain can have only one rule/],
  [rule({ 'a b': secret }), /rules\.a\.b: "a b" is not a header/],
  [rule({ '': secret }), /rules\.a\.b: "" is not a header/],
  [rule({ ['x'.repeat(65)]: secret }), /rules\.a\.b: "x+" is not a header of at most 64/],
  [rule({ Host: secret }), /rules\.a\.b: the header "Host" controls the connection/],
  [
    rule({ 'Proxy-Authorization': secret }),
    /rules\.a\.b: the header "Proxy-Authorization" controls/,
  ],
  [rule({ a: '***' }), /rules\.a\.b\.a: "\*\*\*" is the placeholder/],
  [rule({ 'transfer-encoding': secret }), /rules\.a\.b: the header "transfer-encoding" controls/],
  [rule({ a: secret, A: secret }), /rules\.a\.b: the header "a" appears twice/],
  [rule({ a: `${secret}\r\nb: c` }), /rules\.a\.b\.a: must be at most 2048 characters/],
  [rule({ a: `${secret}\0` }), /rules\.a\.b\.a: must be at most 2048 characters/],
  [rule({ a: `${secret}\u0100` }), /rules\.a\.b\.a: must be at most 2048 characters/],
  [rule({ a: secret.repeat(300) }), /rules\.a\.b\.a: must be at most 2048 characters/],
  [rule({ a: 5 }), /rules\.a\.b\.0\.transform\.headers\.a: expected string/],
  [rule({ a: '${e2b.secrets.KEY}' }), /rules: there is no secret "key"/],
  [rule({ a: 'x ${e2b.identity.tokens.t}' }), /rules\.a\.b\.a: refers to an identity token/],
  [rule({ a: '${e2b.secrets.a b}' }), /rules\.a\.b\.a: has an invalid reference/],
  [
    rule(Object.fromEntries([0, 1].map((half) => [`a${half}`, references(20, half)]))),
    /rules\.a\.b: at most 32 secrets/,
  ],
  [
    rule(Object.fromEntries(Array.from({ length: 21 }, (_, index) => [`a${index}`, secret]))),
    /rules\.a\.b: at most 20 headers/,
  ],
]

/** Invalid network settings and the error text after `network.` when a create is rejected. */
const refusals: readonly (readonly [object, RegExp])[] = [
  ...noDomains.map(
    (entry) =>
      [
        { allowOut: ['a.b', entry], denyOut: [everything] },
        /allowOut: ".*" is not an IP address, a CIDR range or a domain/,
      ] as const,
  ),
  [{ allowOut: ['a.b'] }, /allowOut: the domain "a\.b" has an effect only when .*denyOut/],
  [{ allowOut: ['a.b'], denyOut: ['128.0.0.0/1'] }, /allowOut: the domain "a\.b" has an effect/],
  [{ denyOut: ['a.b'] }, /denyOut: "a\.b" is not an IP address or a CIDR range/],
  ...noAddresses.map(
    (address) =>
      [
        { egressProxy: { address, username: secret, password: secret } },
        /egressProxy\.address: must be host:port/,
      ] as const,
  ),
  ...internalAddresses.map(
    (host) =>
      [
        { egressProxy: { address: `${host}:1080` } },
        /egressProxy\.address: must not be in an internal range/,
      ] as const,
  ),
  [{ egressProxy: {} }, /egressProxy\.address: is required/],
  [{ egressProxy: at }, /egressProxy: expected object/],
  [{ egressProxy: { address: at, password: secret } }, /egressProxy\.password: needs a username/],
  [{ egressProxy: { address: at, username: '' } }, /egressProxy\.username: must not be empty/],
  [
    { egressProxy: { address: at, username: '', password: secret } },
    /egressProxy\.username: must not be empty/,
  ],
  ...['username', 'password'].flatMap((field) =>
    [
      ['ü'.repeat(128), 'must be at most 255 bytes'],
      [secret.repeat(29), 'Too big'],
      [`${secret}\0`, 'must be well-formed'],
      [`${secret}\ud800`, 'must be well-formed'],
      [5, 'expected string'],
    ].map(
      ([value, message]) =>
        [
          { egressProxy: { address: at, username: 'me', [field]: value } },
          new RegExp(`egressProxy\\.${field}: ${message}`),
        ] as const,
    ),
  ),
  ...ruleRefusals.map(([rules, text]) => [{ rules, ...kept }, text] as const),
]

async function isRefused(method: string, path: string, options: { body: object; text: RegExp }) {
  const { status, text, json } = await api.call(method, path, { body: options.body })
  assert.equal(status, 400, text)
  assert.match(Object(json).message, options.text)
  assert.doesNotMatch(text, new RegExp(secret))
}

for (const [network, text] of refusals) {
  const what = JSON.stringify(network).slice(0, 90)
  test(`${what} is refused at a create, and none is made`, async () => {
    const body = { templateID: 'base', network }
    await isRefused('POST', '/v2/sandboxes', {
      body,
      text: new RegExp(`network\\.${text.source}`),
    })
    assert.deepEqual([...api.node.running.keys()], [running])
  })

  test(`${what} is refused as an update, and nothing changes`, async () => {
    await isRefused('PUT', `/sandboxes/${running}/network`, { body: network, text })
    assert.equal(api.node.begun('network'), 0)
    const { json } = await api.call('GET', `/sandboxes/${running}`)
    const { password: _secret, ...egressProxy } = kept.egressProxy
    assert.deepEqual(Object(json).network, { ...kept, egressProxy })
  })
}
