import assert from 'node:assert/strict'
import { test } from 'node:test'
import { joinLineComments, plainText, proseRules } from './prose.ts'
import type { Comment } from './prose.ts'

function comment(text: string, place: Partial<Comment> = {}): Comment {
  return { path: 'apps/api/src/team.ts', line: 1, column: 1, type: 'Block', text, ...place }
}

const unclear = (text: string) => messagesOf('unclear comment', text)
const weak = (text: string) => messagesOf('comment starts with a pronoun or preposition', text)

function messagesOf(name: string, text: string): string {
  const rule = proseRules([comment(text)]).find((other) => other.name === name)
  return (rule?.findings ?? []).map(({ message }) => message).join()
}

for (const text of [
  'That of one that knows all it would be told.',
  'Those that wait.',
  'Those who wait.',
  'One that builds is not adopted.',
  'One of another build.',
  'Whoever gets the token.',
  'What the node sends.',
  'Who may call.',
  'It runs.',
  'Its address.',
  'their limits',
  'This is the first.',
  'These are kept.',
  'Others may wait.',
]) {
  test(`"${text}" is rejected for its start`, () => {
    assert.match(unclear(text), /starts with/)
    assert.notEqual(weak(text), '')
  })
}

for (const text of [
  'The cell stands still.',
  'The sandbox goes on.',
  'Requests are led to the sandbox.',
  'The node is told the rules.',
  'Removes a snapshot that nobody uses.',
  'The process that is at it.',
  'Pools that are made ahead.',
]) {
  test(`"${text}" is rejected for a soft word`, () => {
    assert.match(unclear(text), /; say /)
    assert.doesNotMatch(unclear(text), /starts with/)
  })
}

for (const text of [
  'Returns the ID of a pre-warmed sandbox.',
  'One connection for each client.',
  'This node owns the cell.',
  'These headers are removed.',
  'What is a cell? A place for one sandbox.',
  'Runs as the user `nobody`.',
  'Tests cannot tell apart equal snapshots.',
  'The rest of the output.',
  'Ahead of the clock by a second.',
]) {
  test(`"${text}" is clear`, () => {
    assert.equal(unclear(text), '')
  })
}

test('a preposition at the start counts as a weak start only', () => {
  assert.equal(unclear('For each request.'), '')
  assert.equal(weak('For each request.'), 'For each request.')
  assert.equal(weak('Format of the record.'), '')
})

test('a soft word in a message or a test title is rejected, but not its start', () => {
  const texts = ['The node is told the rules.', 'It runs.', 'a `told` name'].map((message) => ({
    ...{ path: 'apps/api/src/team.ts', line: 1, message },
  }))
  const rule = proseRules([], texts).find(({ name }) => name.startsWith('invented word'))
  assert.deepEqual(
    rule?.findings.map(({ message }) => message),
    ['"told"; say send, report, notify, assign, show'],
  )
})

test('directives and JSDoc tags are not prose', () => {
  for (const text of ['oxlint-disable-next-line it', '@param {string} it', 'https://it.example/it'])
    assert.equal(unclear(text), '')
})

test('a folder may start 8 % of its comments weakly', () => {
  const comments = Array.from({ length: 25 }, () => comment('Clear.'))
  const [, rule] = proseRules(comments)
  assert.equal(rule?.toleratedIn('apps/api'), 2)
  assert.equal(rule?.toleratedIn('apps/edge'), 0)
})

test('line comments on consecutive lines are one comment', () => {
  const line = (text: string, number: number, column = 3) =>
    comment(text, { type: 'Line', line: number, column })
  const joined = joinLineComments([
    line('The first line', 1),
    line('it continues.', 2),
    line('Another comment.', 4),
    line('beside code', 5, 30),
  ])
  assert.deepEqual(
    joined.map(({ text, line: number }) => [number, text]),
    [
      [1, 'The first line it continues.'],
      [4, 'Another comment.'],
      [5, 'beside code'],
    ],
  )
})

test('plain text has neither asterisks nor line breaks', () => {
  assert.equal(plainText('*\n * Reads a file.\n *\n * Slowly.\n '), 'Reads a file. Slowly.')
})
