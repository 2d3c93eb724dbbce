import assert from 'node:assert/strict'
import { test } from 'node:test'
import { measureCpuMs } from '@atoll/kit/cpu-time'
import { isHostName, renameHost } from './host-name.ts'

test('a host name is a single DNS label', () => {
  for (const name of ['a', 'i1n2o3p4', 'atoll', 'A-9']) assert.ok(isHostName(name), name)
  for (const name of ['', '-a', 'a-', 'a b', 'a\nb', 'a.b', 'ä', 'x'.repeat(64)]) {
    assert.ok(!isHostName(name), name)
  }
})

const cases: readonly (readonly [string, string, string])[] = [
  [
    'its own line alone',
    '127.0.0.1 localhost\n127.0.1.1 old\n::1 localhost\n',
    '127.0.0.1 localhost\n127.0.1.1 new\n::1 localhost\n',
  ],
  ['aliases stay', '127.0.1.1\told.test  old\tdb # old', '127.0.1.1\told.test  new\tdb # old'],
  ['either old name', '127.0.1.1 neutral\n127.0.1.1 old', '127.0.1.1 new\n127.0.1.1 new'],
  ['other names of that address', '127.0.1.1 mine\n', '127.0.1.1 mine\n'],
  ['other addresses', '10.0.0.1 old\n#127.0.1.1 old\n', '10.0.0.1 old\n#127.0.1.1 old\n'],
  ['blanks at the end', '127.0.1.1 mine \n127.0.1.1 \n', '127.0.1.1 mine \n127.0.1.1 \n'],
  ['longer names', '127.0.1.1 older old-er', '127.0.1.1 older old-er'],
  ['no file to speak of', '', ''],
]

for (const [name, before, after] of cases) {
  test(`renames the host: ${name}`, () => {
    assert.equal(renameHost(before, new Set(['old', 'neutral', '']), 'new'), after)
  })
}

test('a large hosts file is handled in linear time', async () => {
  const cpuMs = await measureCpuMs(() => {
    renameHost('127.0.1.1 \t'.repeat(80_000), new Set(['old']), 'new')
    renameHost('\t \n'.repeat(300_000), new Set(['old']), 'new')
  })
  assert.ok(cpuMs < 2000, `${cpuMs} ms`)
})
