import assert from 'node:assert/strict'
import { test } from 'node:test'
import { create } from '@bufbuild/protobuf'
import {
  CreateSandboxRequestSchema,
  NetworkRulesSchema,
} from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { toPolicy, toRules } from './messages.ts'

const everything = '0.0.0.0/0'

test('names and a proxy are stored with the other rules', () => {
  const network = {
    allowOut: ['1.1.1.1'],
    denyOut: [everything],
    allowNames: ['example.com', '*.example.org'],
    proxy: { address: 'proxy.example:1080', username: 'me', password: 'secret' },
  }
  assert.deepEqual(toPolicy(create(CreateSandboxRequestSchema, { network })), { network })
})

test('names are normalized', () => {
  const message = create(NetworkRulesSchema, {
    allowNames: ['Example.COM', '*.Example.org.'],
    proxy: { address: 'Proxy.Example.:1080' },
  })
  const { allowNames, proxy } = toRules(message)
  assert.deepEqual(allowNames, ['example.com', '*.example.org'])
  assert.deepEqual(proxy, { address: 'proxy.example:1080' })
})

test('domains of header rules are normalized', () => {
  const headerRules = [{ pattern: '*.Example.com.', headers: { Authorization: 'a b' } }]
  const { transforms } = toRules(create(NetworkRulesSchema, { headerRules }))
  const domains = [{ pattern: '*.example.com', headers: { Authorization: 'a b' } }]
  assert.deepEqual(transforms, { domains })
})

for (const [pattern, headers] of [
  ['*', { a: 'b' }],
  ['localhost', { a: 'b' }],
  ['a.b', { 'a b': 'c' }],
  ['a.b', { a: 'b\r\nc: d' }],
] as const) {
  test(`${pattern} with ${JSON.stringify(headers)} is refused`, () => {
    const message = create(NetworkRulesSchema, { headerRules: [{ pattern, headers }] })
    assert.throws(() => toRules(message), { reason: 'bad_network_rule' })
  })
}

test('rules with addresses only have the form of the first releases', () => {
  const network = { allowOut: [], denyOut: [everything] }
  assert.deepEqual(toRules(create(NetworkRulesSchema, network)), network)
  assert.deepEqual(toPolicy(create(CreateSandboxRequestSchema)), {})
})

for (const name of ['', '*', 'localhost', '1.2.3.4', 'a..b', '*.*.a.b', 'a.b"; drop']) {
  test(`the name ${JSON.stringify(name)} is refused`, () => {
    const message = create(NetworkRulesSchema, { allowNames: ['example.com', name] })
    assert.throws(() => toRules(message), { kind: 'invalid', reason: 'bad_network_rule' })
  })
}

for (const address of ['', 'proxy.example', 'proxy.example:0', 'me:secret@proxy.example:1080']) {
  test(`the proxy ${JSON.stringify(address)} is refused, and not repeated`, () => {
    const proxy = { address, username: 'me', password: 'secret' }
    const message = 'The address of the proxy must be host:port'
    const refusal = { kind: 'invalid', reason: 'bad_network_rule', message }
    assert.throws(() => toRules(create(NetworkRulesSchema, { proxy })), refusal)
  })
}
