import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import { findAccount } from './accounts.ts'

const passwd = [
  'root:x:0:0:root:/root:/bin/bash',
  '# a comment',
  'short:x:1',
  'anna:x:1000:1000:Anna,,,:/home/anna:/bin/sh',
  'anna:x:2000:2000:second:/elsewhere:/bin/sh',
  'odd:x:one:1::/:/bin/sh',
  'huge:x:4294967295:1::/:/bin/sh',
  'homeless:x:7:7:::/bin/sh',
  '',
].join('\n')
const group = 'root:x:0:\nsudo:x:27:anna,root\nannas:x:28:annabel\nanna:x:1000:anna\nbad:x:y:anna\n'

test('the first account of a name wins, and its primary group comes first and once', () => {
  assert.deepEqual(findAccount('anna', passwd, group), {
    name: 'anna',
    uid: 1000,
    gid: 1000,
    groups: [1000, 27],
    home: '/home/anna',
  })
})

for (const name of ['ghost', '', 'short', '# a comment', 'ann', 'anna:x']) {
  test(`there is no account '${name}'`, () => {
    assert.equal(findAccount(name, passwd, group), undefined)
  })
}

for (const name of ['odd', 'huge']) {
  test(`the IDs of '${name}' are invalid`, () => {
    assert.throws(
      () => findAccount(name, passwd, group),
      (thrown) => thrown instanceof Fault && thrown.kind === 'internal',
    )
  })
}

test('an account without a home gets /', () => {
  assert.equal(findAccount('homeless', passwd, '')?.home, '/')
})
