import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  findRelease,
  formatDeb822,
  parseDeb822,
  parseOneLine,
  readAptSources,
} from './apt-sources.ts'

const stanzas = `# the archive
Types: deb deb-src
# URIs: http://comment.example/debian
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/off
Suites: bookworm
Components: main
Enabled: no

Types: deb-src
URIs: http://mirror.example/source
Suites: bookworm
Components: main
`

test('stanzas yield only enabled binary archives', () => {
  assert.deepEqual(parseDeb822(stanzas), [
    {
      uris: ['http://mirror.example/debian'],
      suites: ['bookworm', 'bookworm-updates'],
      components: ['main', 'contrib'],
      signedBy: '/usr/share/keyrings/debian-archive-keyring.gpg',
    },
  ])
})

test('a key written into the stanza survives reading and writing', () => {
  const key = 'Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n'
  const text = `Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm\nComponents: main\n${key}`
  const [source] = parseDeb822(text)
  assert.ok(source)
  assert.equal(formatDeb822(source), text)
})

const lines: ReadonlyArray<readonly [string, ReturnType<typeof parseOneLine>]> = [
  [
    'deb http://mirror.example/debian bookworm main contrib # mine',
    [
      {
        uris: ['http://mirror.example/debian'],
        suites: ['bookworm'],
        components: ['main', 'contrib'],
      },
    ],
  ],
  [
    'deb [arch=amd64 signed-by=/k.gpg trusted=yes] http://mirror.example/debian bookworm main',
    [
      {
        uris: ['http://mirror.example/debian'],
        suites: ['bookworm'],
        components: ['main'],
        signedBy: '/k.gpg',
        trusted: true,
      },
    ],
  ],
  ['# deb http://mirror.example/debian bookworm main', []],
  ['deb-src http://mirror.example/debian bookworm main', []],
  ['deb cdrom:[Debian 12]/ bookworm', []],
]
for (const [line, expected] of lines) {
  test(`the line "${line}" yields ${expected.length} archives`, () => {
    assert.deepEqual(parseOneLine(line), expected)
  })
}

test('both formats are read, other files are not, and the release is found among them', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-apt-'))
  try {
    const parts = join(dir, 'sources.list.d')
    await mkdir(parts)
    await writeFile(
      join(dir, 'sources.list'),
      'deb http://a.example/debian bookworm-security main\n',
    )
    await writeFile(join(parts, 'debian.sources'), stanzas)
    await writeFile(join(parts, 'old.list.save'), 'deb http://b.example/debian bookworm main\n')
    const sources = await readAptSources(dir)
    assert.deepEqual(
      sources.map(({ uris }) => uris[0]),
      ['http://a.example/debian', 'http://mirror.example/debian'],
    )
    assert.equal(findRelease(sources, 'bookworm')?.uris[0], 'http://mirror.example/debian')
    assert.equal(findRelease(sources, 'trixie'), undefined)
  } finally {
    await rm(dir, { recursive: true })
  }
})
