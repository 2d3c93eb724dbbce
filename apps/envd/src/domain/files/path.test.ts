import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import { resolvePath } from './path.ts'

const table = [
  { path: '', workdir: '/work', expected: '/work' },
  { path: '', workdir: undefined, expected: '/home/user' },
  { path: '~', workdir: '/work', expected: '/home/user' },
  { path: '~/', workdir: '/work', expected: '/home/user' },
  { path: '~/a/../b', workdir: '/work', expected: '/home/user/b' },
  { path: 'a/./b', workdir: '/work', expected: '/home/user/a/b' },
  { path: '../x', workdir: '/work', expected: '/home/x' },
  { path: '/a/../b//c', workdir: '/work', expected: '/a/../b//c' },
]

for (const { path, workdir, expected } of table) {
  test(`'${path}' with the workdir ${workdir} is ${expected}`, () => {
    assert.equal(resolvePath(path, { home: '/home/user', workdir }), expected)
  })
}

test('~user is rejected', () => {
  for (const path of ['~root', '~root/x', '~~']) {
    assert.throws(
      () => resolvePath(path, { home: '/home/user' }),
      (thrown) => thrown instanceof Fault && thrown.kind === 'invalid',
    )
  }
})
