import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { readManifest } from './manifest.ts'

const digest = (letter: string) => `sha256:${letter.repeat(64)}`
const blob = { digest: digest('a'), mediaType: 'x', size: 1 }

test('a manifest has the digest of the bytes that were sent', () => {
  const text = JSON.stringify({ schemaVersion: 2, config: blob, layers: [blob] })
  const expected = createHash('sha256').update(text).digest('hex')
  assert.deepEqual(readManifest(text), { digest: `sha256:${expected}`, ours: undefined })
})

test('of an image for several machines ours is taken', () => {
  const manifests = ['s390x', 'arm64', 'amd64'].map((architecture, at) => ({
    digest: digest('abc'.charAt(at)),
    platform: { os: 'linux', architecture },
  }))
  const text = JSON.stringify({ manifests: [{ digest: digest('0') }, ...manifests] })
  assert.equal(readManifest(text).ours, digest(process.arch === 'arm64' ? 'b' : 'c'))
  const others = JSON.stringify({ manifests: manifests.slice(0, 1) })
  assert.throws(() => readManifest(others), { step: 'base', message: /not made for linux/ })
})

for (const [what, manifest, message] of [
  [
    'whose layers lie elsewhere',
    { config: blob, layers: [{ ...blob, urls: ['http://127.0.0.1/'] }] },
    /lie elsewhere/,
  ],
  [
    'whose config lies elsewhere',
    { config: { ...blob, urls: ['x'] }, layers: [] },
    /lie elsewhere/,
  ],
  ['of an old kind', { schemaVersion: 1, fsLayers: [] }, /too old/],
  ['with a name for a digest', { config: { digest: '../x' }, layers: [] }, /too old/],
  ['that is none', 'nothing', /too old/],
] as const) {
  test(`an image ${what} is refused`, () => {
    assert.throws(() => readManifest(JSON.stringify(manifest)), { step: 'base', message })
  })
}
