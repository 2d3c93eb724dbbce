import assert from 'node:assert/strict'
import { test } from 'node:test'
import { measureCpuMs } from '@atoll/kit/cpu-time'
import { authority, otherAuthority } from '../../testing/certificates.ts'
import { hasOtherAuthorities, replaceAuthority } from './ca-bundle.ts'

const others = '# a list\n-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'
const add = (bundle: string, caBundle: string, old = '') =>
  replaceAuthority(bundle, { caBundle, old })

test('the egress CA is appended once, and the next replaces it', () => {
  const first = add(others, authority)
  assert.ok(first.startsWith(others) && first.includes(`\n${authority}#`))
  assert.equal(add(first, authority, authority), first)
  assert.equal(add(first, otherAuthority, authority), add(others, otherAuthority))
  assert.equal(add(add(others.trimEnd(), authority), otherAuthority), add(others, otherAuthority))
})

test('certificates after the egress CA are kept', () => {
  const later = '-----BEGIN CERTIFICATE-----\nMIIC\n-----END CERTIFICATE-----\n'
  const bundle = add(add(others, authority) + later, otherAuthority)
  assert.equal(bundle, add(others + later, otherAuthority))
})

test('an egress CA without markers is replaced too', () => {
  assert.equal(add(others + authority, otherAuthority, authority), add(others, otherAuthority))
  assert.equal(add(others + authority, authority), add(others, authority))
})

test('an unpaired marker removes no other certificates', () => {
  const [begin] = add('', authority).split('\n', 1)
  const torn = `${begin}\n${others}`
  const bundle = add(add(torn, authority), otherAuthority)
  assert.ok(bundle.startsWith(torn) && !bundle.includes(authority))
})

test('bundles with many small blocks are handled in linear time', async () => {
  const small = '-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n'
  const many = Array.from({ length: 100_000 }, (_, i) => small.replace('\n', `\n${i}\n`)).join('')
  const cpuMs = await measureCpuMs(() => {
    const [begin] = add('', authority).split('\n', 1)
    assert.equal(add(many, authority, many), add('', authority))
    assert.ok(add(`${begin}\n`.repeat(100_000), authority).endsWith(add('', authority)))
  })
  assert.ok(cpuMs < 3000, `${cpuMs} ms`)
})

test('a bundle with the egress CA alone has no other authorities', () => {
  assert.equal(hasOtherAuthorities(add('', authority)), false)
  assert.equal(hasOtherAuthorities(add('# nobody\n', authority)), false)
  assert.equal(hasOtherAuthorities(add(others, authority)), true)
})
