import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HeaderMap } from './header-map.ts'

type AnyHeaders = HeaderMap | Headers
type Step = (headers: AnyHeaders) => unknown

const add =
  (name: string, value: string): Step =>
  (headers) =>
    headers.append(name, value)
const set =
  (name: string, value: string): Step =>
  (headers) =>
    headers.set(name, value)
const remove =
  (name: string): Step =>
  (headers) =>
    headers.delete(name)

const contents: Readonly<Record<string, readonly Step[]>> = {
  nothing: [],
  'one header': [add('Content-Type', 'text/plain')],
  'several values of one name': [add('a', '1'), add('A', '2'), add('a', '')],
  'a replaced value': [add('a', '1'), add('a', '2'), set('A', '3')],
  'a removed name': [add('a', '1'), add('b', '2'), remove('A'), remove('c')],
  'names out of order': [
    add('b', '1'),
    add('A', '2'),
    add('c-d', '3'),
    add('c', '4'),
    add('_', '5'),
  ],
  'several cookies to set': [add('Set-Cookie', 'a=1, 2'), add('x', '1'), add('set-cookie', 'b=2')],
  'replaced cookies to set': [
    add('set-cookie', 'a'),
    add('set-cookie', 'b'),
    set('set-cookie', 'c'),
  ],
  'cookies of a request': [add('cookie', 'a=1'), add('Cookie', 'b=2')],
  'spaces around a value': [add('a', ' \t\r\n 1 \t 2 \r\n '), set('b', ' \n')],
  'special names': [add('__proto__', '1'), add('constructor', '2'), add("!#$%&'*+-.^_`|~09", '3')],
  'all characters that a value may have': [
    add(
      'a',
      String.fromCharCode(...Array.from({ length: 255 }, (_, at) => at + 1)).replace(/[\r\n]/g, ''),
    ),
  ],
}

for (const [content, steps] of Object.entries(contents)) {
  test(`behaves like Headers with ${content}`, () => {
    assert.deepEqual(observe(fill(new HeaderMap(), steps)), observe(fill(new Headers(), steps)))
  })
}

test('is made from the same values as Headers', () => {
  const steps = [add('b', '1'), add('a', '2'), add('set-cookie', 'x'), add('set-cookie', 'y')]
  const [ours, theirs] = [fill(new HeaderMap(), steps), fill(new Headers(), steps)]
  const pairs: [string, string][] = [
    ['B', '1'],
    ['b', '2'],
    ['a', '3'],
  ]
  for (const init of [undefined, {}, { B: '1', a: '2' }, pairs, ours, theirs]) {
    assert.deepEqual(observe(new HeaderMap(init)), observe(new Headers(init)))
  }
})

const badNames = ['', ' ', 'a b', 'a:', 'a\r\nb', 'a\0', 'ä', 'Ā', '"a"', 'a,b', ':path']
const badValues = ['a\r\nset-cookie: b', 'a\nb', 'a\rb', 'a\0', '\0', 'Ā', '😀']

for (const name of badNames) {
  test(`refuses the name ${JSON.stringify(name)}, like Headers`, () => {
    for (const headers of [new HeaderMap(), new Headers()]) {
      assert.throws(() => headers.append(name, 'x'), TypeError)
      assert.throws(() => headers.set(name, 'x'), TypeError)
      assert.throws(() => headers.get(name), TypeError)
      assert.throws(() => headers.has(name), TypeError)
      assert.throws(() => headers.delete(name), TypeError)
    }
    for (const Kind of [HeaderMap, Headers]) assert.throws(() => new Kind([[name, 'x']]), TypeError)
  })
}

for (const value of badValues) {
  test(`refuses the value ${JSON.stringify(value)}, like Headers, and keeps the old one`, () => {
    for (const headers of [new HeaderMap({ a: '1' }), new Headers({ a: '1' })]) {
      assert.throws(() => headers.append('a', value), TypeError)
      assert.throws(() => headers.set('a', value), TypeError)
      assert.equal(headers.get('a'), '1')
    }
    for (const Kind of [HeaderMap, Headers]) assert.throws(() => new Kind({ a: value }), TypeError)
  })
}

test('refuses pairs of the wrong length, like Headers', () => {
  for (const pair of [[], ['a'], ['a', 'b', 'c']]) {
    for (const Kind of [HeaderMap, Headers]) {
      assert.throws(() => Reflect.construct(Kind, [[pair]]), TypeError)
    }
  }
})

test('a copy does not change with its original', () => {
  const original = new HeaderMap({ a: '1' })
  const copy = new HeaderMap(original)
  original.append('a', '2')
  assert.equal(copy.get('a'), '1')
})

function fill<T extends AnyHeaders>(headers: T, steps: readonly Step[]): T {
  for (const step of steps) step(headers)
  return headers
}

/** Reads all that headers offer. */
function observe(headers: AnyHeaders) {
  const visited: unknown[] = []
  const thisValue = {}
  headers.forEach(function (this: unknown, value: string, name: string, parent: unknown) {
    visited.push([name, value, this === thisValue, parent === headers])
  }, thisValue)
  const names = [
    'a',
    'A',
    'b',
    'c',
    'cookie',
    'Set-Cookie',
    'content-type',
    '__proto__',
    'toString',
  ]
  return {
    visited,
    all: [...headers],
    entries: [...headers.entries()],
    keys: [...headers.keys()],
    values: [...headers.values()],
    cookies: headers.getSetCookie(),
    got: names.map((name) => [name, headers.get(name), headers.has(name)]),
    tag: Object.prototype.toString.call(headers),
  }
}
