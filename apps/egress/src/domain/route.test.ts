import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { test } from 'node:test'
import type { EgressRules } from '@atoll/contracts/network/rules'
import { compileRules } from './egress-rules.ts'
import { findRoute } from './route.ts'

const authority = { certificate: 'c', key: 'k' }
const transforms = {
  domains: [{ pattern: 'example.com', headers: { A: '1' } }],
  authority,
}
const destination = { address: '9.9.9.9', port: 443 }

function find(changed: Partial<EgressRules>, name?: string) {
  const rules = { allowOut: [], denyOut: [], allowNames: [], transforms, ...changed }
  const serverName = name === undefined ? undefined : { name, protocol: 'tls' as const }
  return findRoute(rules, compileRules(rules, ['10.0.0.0/8']), { destination, serverName })
}

test('a header rule does not allow a denied destination', () => {
  assert.equal(find({ denyOut: ['0.0.0.0/0'] }, 'example.com'), undefined)
  assert.equal(find({ denyOut: ['0.0.0.0/0'], allowNames: ['b.com'] }, 'example.com'), undefined)
})

test('an allowed name may resolve to any address', () => {
  const route = find({ denyOut: ['0.0.0.0/0'], allowNames: ['example.com'] }, 'example.com')
  assert.deepEqual(route?.transform, {
    name: 'example.com',
    protocol: 'tls',
    headers: { A: '1' },
    authority,
  })
})

test('an allowed name may resolve to any address, even if the dialed address is allowed too', () => {
  const route = find({ allowOut: ['9.9.9.9'], allowNames: ['example.com'] }, 'example.com')
  assert.equal(route?.verdict.kind, 'byAddress')
  assert.ok(route.transform && !('within' in route.transform))
})

test('header rules apply to plain HTTP on port 80 only, and to TLS on all ports', () => {
  const rules = { allowOut: [], denyOut: [], allowNames: [], transforms }
  const isChanged = (protocol: 'tls' | 'http', port: number) => {
    const serverName = { name: 'example.com', protocol }
    const route = findRoute(rules, compileRules(rules, []), {
      destination: { ...destination, port },
      serverName,
    })
    assert.equal(route?.verdict.kind, 'byAddress')
    return route.transform !== undefined
  }
  assert.deepEqual(
    [80, 443, 8080].map((port) => isChanged('http', port)),
    [true, false, false],
  )
  assert.deepEqual(
    [80, 443, 8080].map((port) => isChanged('tls', port)),
    [true, true, true],
  )
})

test('a name that is not allowed may resolve only to addresses that the sandbox may reach', () => {
  const route = find({ denyOut: ['1.1.1.1'], allowNames: ['b.com'] }, 'example.com')
  assert.equal(route?.verdict.kind, 'byAddress')
  const { first, last } = route?.transform?.within?.denied[0] ?? {}
  assert.deepEqual([first, last], [0x01010101, 0x01010101])
  assert.deepEqual(route?.transform?.within?.allowNames, [])
})

test('without a name or a matching rule, no headers are set', () => {
  for (const name of [undefined, 'www.example.com']) {
    assert.deepEqual(find({}, name), { verdict: { kind: 'byAddress' }, proxy: undefined })
  }
})

test('routes differ if their headers, CA or address rules differ', () => {
  const before = find({}, 'example.com')
  const [domain] = transforms.domains
  const others: Partial<EgressRules>[] = [
    { transforms: { authority, domains: [{ pattern: 'example.com', headers: { A: '2' } }] } },
    { transforms: { ...transforms, authority: { ...authority, key: 'l' } } },
    { denyOut: ['1.1.1.1'] },
    { transforms: { ...transforms, domains: [] } },
  ]
  for (const other of others) {
    assert.equal(isDeepStrictEqual(find(other, 'example.com'), before), false)
  }
  const more = [...transforms.domains, { pattern: '*.example.com', headers: {} }]
  for (const domains of [more, domain ? [{ ...domain, pattern: '*.com' }] : []]) {
    assert.deepEqual(find({ transforms: { authority, domains } }, 'example.com'), before)
  }
})
