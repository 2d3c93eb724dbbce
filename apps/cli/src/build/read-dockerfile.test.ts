import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readDockerfile } from './read-dockerfile.ts'

test('a mistake in the Dockerfile is a usage error with the line', () => {
  assert.throws(() => readDockerfile('FROM a\nFROBNICATE x'), {
    name: 'UsageError',
    message: 'Line 2 of the Dockerfile: there is no instruction "FROBNICATE"',
  })
})

test('a build argument that no ARG takes is refused', () => {
  assert.throws(() => readDockerfile('FROM a\nARG Y', { X: '1', Y: '2' }), {
    name: 'UsageError',
    message: 'The Dockerfile has no ARG X for --build-arg.',
  })
})

test('files of the directory may be copied', () => {
  const { steps } = readDockerfile('FROM a\nCOPY b /c')
  assert.deepEqual(steps[0]?.copy?.sources, ['b'])
})
