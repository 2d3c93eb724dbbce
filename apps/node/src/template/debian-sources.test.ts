import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sourcesFor } from './debian-sources.ts'

const archive = (release: string) => ({
  uris: ['http://mirror.example/debian'],
  suites: [release, `${release}-updates`, `${release}-backports`],
  components: ['main', 'contrib'],
})
const security = (release: string) => ({
  uris: ['http://mirror.example/debian-security'],
  suites: [`${release}-security`],
  components: ['main'],
})
const expected = [
  {
    uris: ['http://mirror.example/debian'],
    suites: ['bookworm', 'bookworm-updates'],
    components: ['main'],
  },
  security('bookworm'),
]

test('the release of the machine itself is taken without backports and contrib', () => {
  const own = [archive('bookworm'), security('bookworm')]
  assert.deepEqual(sourcesFor(own, 'bookworm', 'bookworm'), expected)
})

test('on a newer Debian the same mirrors are asked for the release', () => {
  const own = [archive('trixie'), security('trixie')]
  assert.deepEqual(sourcesFor(own, 'bookworm', 'trixie'), expected)
})

test('a system that is no Debian has no mirror to offer', () => {
  assert.deepEqual(sourcesFor([archive('noble')], 'bookworm', ''), [])
})
