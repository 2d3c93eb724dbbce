import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { readPages, splitPage } from './pages.ts'

test('a heading, a paragraph, a list item and a table row are one text each, and code is left out', () => {
  const page = [
    '# Title',
    'first line',
    'second line',
    '',
    '- item',
    '  continued',
    '- other',
    '```sh',
    'code',
    '```',
    '| a | b |',
    '| c | d |',
  ].join('\n')
  assert.deepEqual(
    splitPage('a.md', page).map(({ line, message }) => [line, message]),
    [
      [1, '# Title'],
      [2, 'first line second line'],
      [5, '- item continued'],
      [7, '- other'],
      [11, '| a | b |'],
      [12, '| c | d |'],
    ],
  )
})

test('the pages of the repository are found', () => {
  const paths = new Set(readPages(join(import.meta.dirname, '..')).map(({ path }) => path))
  for (const path of ['README.md', 'docs/architecture.md', 'docs/decisions/README.md'])
    assert.ok(paths.has(path), path)
  assert.ok([...paths].every((path) => !path.includes('node_modules')))
})
