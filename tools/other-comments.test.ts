import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { findComments, readOtherComments } from './other-comments.ts'

const textsOf = (path: string, source: string) =>
  findComments(path, source).map(({ line, text }) => [line, text])

test('comments of C are found, also over several lines, and not in strings', () => {
  const source = [
    '/* First',
    '   block. */',
    'const char *url = "http://x/*y*/"; // Of the server.',
    '// One comment',
    '// on two lines.',
  ].join('\n')
  assert.deepEqual(textsOf('a.c', source), [
    [1, 'First block.'],
    [3, 'Of the server.'],
    [4, 'One comment on two lines.'],
  ])
})

test('comments and doc strings of Python are found, and not in strings', () => {
  const source = [
    '#!/usr/bin/env python3',
    '"""Runs code."""',
    "name = '# not a comment'  # A comment.",
    'text = """# not',
    'a comment"""',
  ].join('\n')
  assert.deepEqual(textsOf('a.py', source), [
    [2, 'Runs code.'],
    [3, 'A comment.'],
  ])
})

test('the repository has such comments in each language', () => {
  const comments = readOtherComments(join(import.meta.dirname, '..'))
  for (const ending of ['.c', '.py', '.proto'])
    assert.ok(
      comments.some(({ path }) => path.endsWith(ending)),
      ending,
    )
})
