import assert from 'node:assert/strict'
import { test } from 'node:test'
import { byDigest, findRegistry, imageKey, parseRegistries } from './image.ts'

const allowed =
  parseRegistries('docker.io, *.Example.com,http://127.0.0.1:5000,localhost:5001') ?? []
const registryOf = (reference: string) => findRegistry({ reference }, allowed)

for (const [reference, name] of [
  ['python', 'docker.io'],
  ['python:3.12-slim', 'docker.io'],
  [`someone/image@sha256:${'a'.repeat(64)}`, 'docker.io'],
  ['someone/image:Tag-1', 'docker.io'],
  ['docker.io/library/python:3', 'docker.io'],
  ['a.example.com/x', 'a.example.com'],
  ['127.0.0.1:5000/x:1', '127.0.0.1:5000'],
  ['localhost:5001/x', 'localhost:5001'],
] as const) {
  test(`${reference} comes from ${name}`, () => assert.equal(registryOf(reference).name, name))
}

test('only one that is said to be is asked without TLS', () => {
  assert.equal(registryOf('127.0.0.1:5000/x').isPlain, true)
  assert.equal(registryOf('python').isPlain, false)
})

for (const reference of [
  '169.254.169.254/latest/meta-data',
  '127.0.0.1:6000/x',
  'example.com/x',
  'a.example.com.evil.com/x',
  'localhost/x',
]) {
  test(`${reference} is of no registry that is allowed`, () => {
    assert.throws(() => registryOf(reference), { step: 'base', message: /ATOLL_REGISTRIES/ })
  })
}

for (const reference of [
  '',
  '-v',
  '--help/x',
  'a b',
  'a\nb',
  'http://docker.io/x?',
  'x'.repeat(600),
]) {
  test(`${JSON.stringify(reference.slice(0, 20))} is no image`, () => {
    assert.throws(() => registryOf(reference), { step: 'base', message: /malformed/ })
  })
}

for (const text of ['', 'a b', 'https://docker.io', 'docker.io/library', 'docker.io,,ghcr.io']) {
  test(`${JSON.stringify(text)} is no list of registries`, () => {
    assert.equal(parseRegistries(text), undefined)
  })
}

test('a layer of an image is reused on the same layers below it, by teams that may read the image', () => {
  const below = 's1'
  const keys = [
    imageKey('a', { below: undefined, owner: undefined }),
    imageKey('a', { below, owner: undefined }),
    imageKey('b', { below, owner: undefined }),
    imageKey('b', { below, owner: 'team' }),
  ]
  assert.equal(new Set(keys).size, 4)
  assert.equal(imageKey('b', { below, owner: 'team' }), keys[3])
})

for (const [reference, expected] of [
  ['python:3', 'python@d'],
  ['127.0.0.1:5000/x', '127.0.0.1:5000/x@d'],
  ['127.0.0.1:5000/a/x:1@sha256:0', '127.0.0.1:5000/a/x@d'],
] as const) {
  test(`${reference} has a name without its tag`, () => {
    assert.equal(byDigest({ reference }, 'd'), expected)
  })
}
