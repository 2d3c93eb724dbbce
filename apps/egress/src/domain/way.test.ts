import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { test } from 'node:test'
import { compileRules, type SandboxRules } from './destination.ts'
import { findWay } from './way.ts'

const authority = { certificate: 'c', key: 'k' }
const transforms = {
  domains: [{ pattern: 'example.com', headers: { A: '1' } }],
  authority,
}
const target = { address: '9.9.9.9', port: 443 }

function find(changed: Partial<SandboxRules>, name?: string) {
  const rules = { allowOut: [], denyOut: [], allowNames: [], transforms, ...changed }
  const named = name === undefined ? undefined : { name, protocol: 'tls' as const }
  return findWay(rules, compileRules(rules, ['10.0.0.0/8']), { target, named })
}

test('a rule does not allow what is denied', () => {
  assert.equal(find({ denyOut: ['0.0.0.0/0'] }, 'example.com'), undefined)
  assert.equal(find({ denyOut: ['0.0.0.0/0'], allowNames: ['b.com'] }, 'example.com'), undefined)
})

test('a name that is allowed may lead anywhere', () => {
  const way = find({ denyOut: ['0.0.0.0/0'], allowNames: ['example.com'] }, 'example.com')
  assert.deepEqual(way?.transform, {
    name: 'example.com',
    protocol: 'tls',
    headers: { A: '1' },
    authority,
  })
})

test('a name that is allowed may lead anywhere although the address was allowed too', () => {
  const way = find({ allowOut: ['9.9.9.9'], allowNames: ['example.com'] }, 'example.com')
  assert.equal(way?.verdict.kind, 'byAddress')
  assert.ok(way.transform && !('within' in way.transform))
})

test('plain HTTP is changed on its own port only, TLS on all', () => {
  const rules = { allowOut: [], denyOut: [], allowNames: [], transforms }
  const isChanged = (protocol: 'tls' | 'http', port: number) => {
    const named = { name: 'example.com', protocol }
    const way = findWay(rules, compileRules(rules, []), { target: { ...target, port }, named })
    assert.equal(way?.verdict.kind, 'byAddress')
    return way.transform !== undefined
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

test('a name that is not allowed as such may lead only where its sandbox may go', () => {
  const way = find({ denyOut: ['1.1.1.1'], allowNames: ['b.com'] }, 'example.com')
  assert.equal(way?.verdict.kind, 'byAddress')
  const { first, last } = way?.transform?.within?.denied[0] ?? {}
  assert.deepEqual([first, last], [0x01010101, 0x01010101])
  assert.deepEqual(way?.transform?.within?.allowNames, [])
})

test('without a name, or a rule for it, nothing is changed', () => {
  for (const name of [undefined, 'www.example.com']) {
    assert.deepEqual(find({}, name), { verdict: { kind: 'byAddress' }, proxy: undefined })
  }
})

test('a way is another one when its headers, authority or address rules are', () => {
  const before = find({}, 'example.com')
  const [domain] = transforms.domains
  const others: Partial<SandboxRules>[] = [
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
