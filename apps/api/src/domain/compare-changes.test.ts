import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compareChanges, compareFile } from './compare-changes.ts'
import type { ChangedFile, FileChange } from './file-changes.ts'

function change(kind: FileChange['kind'], path: string, fields: Partial<FileChange> = {}) {
  const modifiedAt = '2026-01-01T00:00:00.000Z'
  return { path, kind, type: 'file', sizeBytes: 1, mode: 0o644, modifiedAt, ...fields } as const
}

const later = { modifiedAt: '2026-01-02T00:00:00.000Z' }

for (const [name, ours, theirs, expected] of [
  ['nothing changed', [], [], []],
  ['the same change', [change('modified', '/a')], [change('modified', '/a')], []],
  ['both deleted it', [change('deleted', '/a')], [change('deleted', '/a')], []],
  ['only ours added', [change('added', '/a')], [], ['added /a']],
  ['only theirs added', [], [change('added', '/a')], ['deleted /a']],
  ['only ours modified', [change('modified', '/a')], [], ['modified /a']],
  ['only theirs modified', [], [change('modified', '/a')], ['modified /a']],
  ['only ours deleted', [change('deleted', '/a')], [], ['deleted /a']],
  ['only theirs deleted', [], [change('deleted', '/a')], ['added /a']],
  ['added twice', [change('added', '/a')], [change('added', '/a', later)], ['modified /a']],
  ['modified and deleted', [change('modified', '/a')], [change('deleted', '/a')], ['added /a']],
  [
    'a file below a directory that the other deleted',
    [change('modified', '/d/e/f')],
    [change('deleted', '/d')],
    ['added /d', 'added /d/e/f'],
  ],
  [
    'directories of different times',
    [change('added', '/d', { type: 'directory' })],
    [change('added', '/d', { type: 'directory', ...later })],
    [],
  ],
  [
    'directories of different modes',
    [change('added', '/d', { type: 'directory' })],
    [change('added', '/d', { type: 'directory', mode: 0o700 })],
    ['modified /d'],
  ],
] as const) {
  test(`compared with another sandbox: ${name}`, () => {
    const found = compareChanges(ours, theirs).map(({ kind, path }) => `${kind} ${path}`)
    assert.deepEqual(found, expected)
  })
}

const side = (content: string) =>
  ({ type: 'file', sizeBytes: 1, mode: 0o644, content, isTruncated: false }) as const
const file = (before?: string, after?: string): ChangedFile => ({
  path: '/a',
  ...(before !== undefined && { before: side(before) }),
  ...(after !== undefined && { after: side(after) }),
})

for (const [name, ours, theirs, expected] of [
  ['ours alone', file('t', 'o'), undefined, file('t', 'o')],
  ['theirs alone', undefined, file('t', 'x'), file('x', 't')],
  ['both', file('t', 'o'), file('t', 'x'), file('x', 'o')],
  ['ours is new', file(undefined, 'o'), undefined, file(undefined, 'o')],
  ['theirs is new', undefined, file(undefined, 'x'), file('x', undefined)],
  ['neither', undefined, undefined, undefined],
] as const) {
  test(`a file of two sandboxes: ${name}`, () => {
    assert.deepEqual(compareFile('/a', ours, theirs), expected)
  })
}
