import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EgressRules } from '@atoll/contracts/network/rules'
import { compileRules, decide, needsName } from './egress-rules.ts'

const closed = ['10.0.0.0/8', '169.254.0.0/16']
const everything = ['0.0.0.0/0']

function setup(rules: Partial<EgressRules>) {
  return compileRules({ allowOut: [], denyOut: [], allowNames: [], ...rules }, closed)
}

const strict = setup({
  allowOut: ['8.8.8.8', '10.1.1.1'],
  denyOut: everything,
  allowNames: ['example.com', '*.example.org'],
})

for (const [address, name, expected] of [
  ['8.8.8.8', undefined, { kind: 'byAddress' }],
  ['8.8.8.8', 'example.com', { kind: 'byAddress' }],
  ['9.9.9.9', 'example.com', { kind: 'byName', name: 'example.com' }],
  ['9.9.9.9', 'a.b.example.org', { kind: 'byName', name: 'a.b.example.org' }],
  ['9.9.9.9', 'example.org', { kind: 'refuse' }],
  ['9.9.9.9', undefined, { kind: 'refuse' }],
] as const) {
  test(`with everything denied, ${address} with name ${name} gets the verdict ${expected.kind}`, () => {
    assert.deepEqual(decide(strict, address, name), expected)
  })
}

test('without rules every connection goes by address', () => {
  assert.deepEqual(decide(setup({}), '9.9.9.9', 'example.com'), { kind: 'byAddress' })
})

test('an allowed name is dialed by name even if its address is not denied', () => {
  const rules = setup({ allowNames: ['example.com'], denyOut: ['1.1.1.1'] })
  assert.deepEqual(decide(rules, '9.9.9.9', 'example.com'), { kind: 'byName', name: 'example.com' })
  assert.deepEqual(decide(rules, '9.9.9.9', 'other.com'), { kind: 'byAddress' })
})

for (const address of ['10.1.1.1', '10.255.255.255', '169.254.169.254']) {
  test(`no rule can allow the closed address ${address}`, () => {
    assert.deepEqual(decide(strict, address, 'example.com'), { kind: 'refuse' })
  })
}

for (const address of ['', '::1', '::ffff:8.8.8.8', 'example.com', '8.8.8.8.', '010.8.8.8']) {
  test(`an invalid IPv4 address is refused: ${JSON.stringify(address)}`, () => {
    assert.deepEqual(decide(setup({}), address, undefined), { kind: 'refuse' })
    assert.equal(needsName(strict, address), false)
  })
}

test('a name is needed only where it can change the verdict', () => {
  const names = { allowNames: ['example.com'] }
  assert.equal(needsName(strict, '9.9.9.9'), true)
  assert.equal(needsName(strict, '8.8.8.8'), false)
  assert.equal(needsName(strict, '10.1.1.1'), false)
  assert.equal(needsName(setup({ ...names, denyOut: ['1.1.1.1'] }), '9.9.9.9'), false)
  assert.equal(needsName(setup({ ...names, denyOut: ['1.1.1.1'] }), '1.1.1.1'), true)
  assert.equal(needsName(setup({ denyOut: everything }), '9.9.9.9'), false)
  assert.equal(needsName(setup({}), '9.9.9.9'), false)
})

test('where no name is needed, no name can change a refusal', () => {
  const lists = [[], ['9.9.9.9'], everything, ['10.0.0.0/8']]
  for (const allowOut of lists) {
    for (const denyOut of lists) {
      for (const allowNames of [[], ['example.com']]) {
        for (const address of ['9.9.9.9', '8.8.8.8', '10.1.1.1']) {
          const rules = setup({ allowOut, denyOut, allowNames })
          const isRefused = (name?: string) => decide(rules, address, name).kind === 'refuse'
          assert.equal(needsName(rules, address), isRefused() !== isRefused('example.com'))
        }
      }
    }
  }
})

test('an invalid entry is a fault when the rules are compiled', () => {
  assert.throws(() => setup({ denyOut: ['example.com'] }), { reason: 'bad_network_rule' })
})
